import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';

import { api } from '../../api/client';
import type { ExecutorOccupancy, HeldAttempt, Timeline } from '../../api/contract';
import { formatCount, formatPercent, plural } from '../../model/numbers';
import { formatDuration, parseTime } from '../../model/time';
import { occupancyRows, slotsOf, sweepOrder, type OccupancyRow } from '../../model/timeline';
import { navigate, trialUrl } from '../../router';
import { Chart, ChartTable } from '../../ui/chart';
import { DataTable, type TableColumn } from '../../ui/data_table';
import { Loading, Pick, When } from '../../ui/parts';
import { TimelineCanvas, TimelineLegend } from '../../ui/timeline_chart';
import { useAnswer } from '../use_answer';

const refreshMs = 10_000;
const mostAttempts = 2000;
const hour = 3600;

const ranges = [
  [String(hour), 'last hour'],
  [String(6 * hour), 'last 6 hours'],
  [String(24 * hour), 'last day'],
  [String(7 * 24 * hour), 'last week'],
] as const;

/** How busy the executors were: shares of time, and which attempts held which slots. */
export function UsagePanel(): JSX.Element {
  const [range, setRange] = useState<string>(ranges[0][0]);
  const usage = useUsage(Number(range));
  if (!usage) return <Loading what="the timeline" />;
  const { timeline, executors } = usage;
  return (
    <>
      <section class="panel" aria-label="Timeline of executors">
        <TimelineChart
          timeline={timeline}
          executors={executors}
          controls={<Pick label="period" value={range} options={ranges} onChange={setRange} />}
        />
      </section>
      {executors.length > 0 && (
        <section class="panel" aria-labelledby="occupancy-title" data-testid="occupancy">
          <div class="table-head">
            <h2 id="occupancy-title">Occupancy</h2>
            <span class="muted small">Share of time in which trials held the slots</span>
          </div>
          <div class="table-scroll">
            <DataTable
              stacks
              columns={occupancyColumns}
              rows={occupancyRows(executors)}
              rowKey={({ executor, slots }) => `${executor}/${slots}`}
            />
          </div>
        </section>
      )}
    </>
  );
}

function TimelineChart({
  timeline,
  executors,
  controls,
}: {
  timeline: Timeline;
  executors: ExecutorOccupancy[];
  controls: JSX.Element;
}): JSX.Element {
  const slots = useMemo(() => slotsOf(timeline, executors), [timeline, executors]);
  const sweeps = useMemo(() => sweepOrder(timeline.attempts), [timeline]);
  const count = timeline.attempts.length;
  return (
    <Chart
      label="Timeline"
      title="Timeline"
      controls={controls}
      data={() => ({
        columns: [
          'sweep',
          'trial',
          'attempt',
          'rank',
          'executor',
          'GPUs',
          'begin',
          'end',
          'outcome',
        ],
        rows: timeline.attempts.flatMap(({ sweep, trial, attempt, ranks, begin, end, outcome }) =>
          ranks.map(({ rank, executor, gpus }) => [
            ...[sweep, trial, attempt, rank, executor, gpus.join(' ')],
            ...[begin, end ?? '', outcome],
          ]),
        ),
      })}
      canvas={() => (
        <TimelineCanvas
          slots={slots}
          sweeps={sweeps}
          since={parseTime(timeline.since)}
          until={parseTime(timeline.until)}
          onOpen={({ sweep, trial }) => navigate(trialUrl(sweep, trial))}
        />
      )}
      table={() => (
        <ChartTable
          label="Attempts by time"
          caption="Attempts that held slots"
          columns={attemptColumns}
          rows={timeline.attempts}
          rowKey={({ sweep, trial, attempt }) => `${sweep}/${trial}/${attempt}`}
        />
      )}
      caption={(asTable) => (
        <>
          {plural(count, 'attempt')} on {plural(slots.length, 'slot')}.
          {timeline.more && ` Only the newest ${formatCount(count)}: choose a shorter period.`}{' '}
          {!asTable && <TimelineLegend attempts={timeline.attempts} sweeps={sweeps} />}
        </>
      )}
    />
  );
}

const attemptColumns: TableColumn<HeldAttempt>[] = [
  {
    label: 'trial',
    cell: ({ sweep, trial }) => (
      <a href={trialUrl(sweep, trial)}>
        {sweep}/{trial}
      </a>
    ),
  },
  { label: 'sweep', cell: ({ sweep_name }) => sweep_name },
  { label: 'attempt', numeric: true, cell: ({ attempt }) => attempt },
  {
    label: 'slots',
    cell: ({ ranks }) =>
      [...new Set(ranks.map((rank) => rank.executor))].map((executor) => {
        const gpus = ranks.filter((rank) => rank.executor === executor).flatMap(({ gpus: g }) => g);
        return (
          <div key={executor}>
            {executor} <span class="muted">{gpus.length > 0 && `GPU ${gpus.join(', ')}`}</span>
          </div>
        );
      }),
  },
  { label: 'begin', cell: ({ begin }) => <When time={begin} /> },
  { label: 'end', cell: ({ end }) => <When time={end} /> },
  {
    label: 'held for',
    numeric: true,
    cell: ({ begin, end }) =>
      end === null ? '–' : formatDuration((parseTime(end) - parseTime(begin)) / 1000),
  },
  { label: 'how it ended', cell: ({ outcome }) => outcome || 'runs' },
];

const occupancyColumns: TableColumn<OccupancyRow>[] = [
  { label: 'executor', cell: ({ executor }) => executor },
  { label: 'slots', cell: ({ slots }) => slots },
  { label: 'last hour', cell: ({ shares }) => <Share share={shares.hour} /> },
  { label: 'last day', cell: ({ shares }) => <Share share={shares.day} /> },
  { label: 'since it joined', cell: ({ shares }) => <Share share={shares.joined} /> },
];

function Share({ share }: { share: number | null }): JSX.Element {
  if (share === null) return <span class="muted">–</span>;
  return (
    <div class="use">
      <div class="bar" aria-hidden="true">
        <span style={{ width: formatPercent(share) }} />
      </div>
      {formatPercent(share)}
    </div>
  );
}

interface Usage {
  timeline: Timeline;
  executors: ExecutorOccupancy[];
}

// Time passes without events, so both are read again at intervals.
function useUsage(seconds: number): Usage | undefined {
  return useAnswer((signal) => readUsage(seconds, signal), {
    about: [seconds],
    leastMs: 1000,
    everyMs: refreshMs,
  }).answer;
}

async function readUsage(seconds: number, signal: AbortSignal): Promise<Usage> {
  const since = new Date(Date.now() - seconds * 1000).toISOString();
  const [timeline, executors] = await Promise.all([
    api.timeline({ since, limit: mostAttempts }, signal),
    api.occupancy(signal),
  ]);
  return { timeline, executors };
}
