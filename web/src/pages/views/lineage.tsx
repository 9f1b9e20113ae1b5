import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { api } from '../../api/client';
import type { Branch } from '../../api/contract';
import { founders, lanesOf, type Lane } from '../../model/lineage';
import { formatMetric, formatStep, plural } from '../../model/numbers';
import type { TrialRow } from '../../model/sweep_model';
import { trialUrl } from '../../router';
import { Chart, ChartTable } from '../../ui/chart';
import { lineToken } from '../../ui/colors';
import { useAnswer } from '../use_answer';
import '../../styles/views.css';
import type { ViewProps } from './view';

const refreshMs = 3000;
const mostBranches = 20_000;
const mostLanes = 200;
const lanePx = 20;

/** The clones and promotions of a sweep: a lane over steps for each trial. */
export function Lineage({ model, version, rows, views }: ViewProps): JSX.Element {
  const { sweep, trials } = model;
  const attempts = rows.reduce((sum, row) => sum + row.attempt_count, 0);
  const { answer: branches } = useAnswer((signal) => api.lineage(sweep.id, mostBranches, signal), {
    about: [sweep.id],
    changes: [attempts],
    leastMs: refreshMs,
  });
  const lanes = useMemo(() => {
    const steps = new Map<number, number>();
    for (const { trial, step } of branches ?? [])
      steps.set(trial, Math.max(steps.get(trial) ?? 0, step));
    for (const [number, { step }] of trials) steps.set(number, step);
    const all = lanesOf(branches ?? [], steps);
    return all.sort((a, b) => endOf(b) - endOf(a) || a.trial - b.trial);
  }, [branches, version]);
  const shown = lanes.slice(0, mostLanes);
  return (
    <Chart
      label="Lineage of the sweep"
      title="lineage"
      by={sweep.time_attr || 'step'}
      views={views}
      onlyData
      data={() => ({
        columns: ['trial', 'donor', 'step'],
        rows: (branches ?? []).map(({ trial, donor, step }) => [trial, donor ?? undefined, step]),
      })}
      canvas={() =>
        shown.length > 0 ? (
          <Lanes sweep={sweep.id} lanes={shown} trials={trials} />
        ) : (
          <p class="muted none">
            {branches ? 'No trial was cloned or promoted.' : 'Reading the lineage…'}
          </p>
        )
      }
      table={() => <BranchTable branches={branches ?? []} />}
      caption={() => summary(lanes, branches ?? [])}
    />
  );
}

const endOf = ({ stretches }: Lane): number => stretches.at(-1)?.to ?? 0;
const colorOf = (trial: number): string => `var(${lineToken(trial)})`;

function summary(lanes: readonly Lane[], branches: readonly Branch[]): string {
  if (branches.length === 0) return '';
  const clones = branches.filter(({ donor }) => donor !== null).length;
  const promotions = branches.length - clones;
  const parts: string[] = [];
  if (clones > 0) {
    const [first] = founders(lanes);
    parts.push(
      `${plural(clones, 'clone')}. A colour is the trial in which the weights began; a line leads from the donor to the clone.`,
    );
    if (first && first.lanes > 1)
      parts.push(`${plural(first.lanes, 'trial')} continue weights of trial ${first.founder}.`);
  }
  if (promotions > 0)
    parts.push(`${plural(promotions, 'promotion')}, each a mark at the step of its rung.`);
  if (lanes.length > mostLanes)
    parts.push(`The ${mostLanes} of ${plural(lanes.length, 'trial')} that came furthest.`);
  if (branches.length >= mostBranches) parts.push('Later clones and promotions are left out.');
  return parts.join(' ');
}

function Lanes({
  sweep,
  lanes,
  trials,
}: {
  sweep: string;
  lanes: readonly Lane[];
  trials: ReadonlyMap<number, TrialRow>;
}): JSX.Element {
  const width = Math.max(1, ...lanes.map(endOf));
  const height = lanes.length * lanePx;
  const rowOf = new Map(lanes.map(({ trial }, i) => [trial, i]));
  const middle = (i: number): number => (i + 0.5) * lanePx;
  return (
    <div class="lineage" data-testid="lineage-lanes" data-lanes={lanes.length}>
      <ul class="lane-names">
        {lanes.map(({ trial }) => {
          const best = trials.get(trial)?.best;
          return (
            <li key={trial} style={{ height: `${lanePx}px` }}>
              <a href={trialUrl(sweep, trial)}>trial {trial}</a>{' '}
              {best !== undefined && <span class="muted">{formatMetric(best)}</span>}
            </li>
          );
        })}
      </ul>
      <div>
        <svg
          class="lanes"
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          style={{ height: `${height}px` }}
          role="img"
          aria-label={`${plural(lanes.length, 'trial')} as lanes over steps; the table has the same data`}
        >
          {lanes.map(({ trial, stretches }, i) =>
            stretches.map(({ from, to, founder }) => (
              <rect
                key={`${trial} ${from}`}
                x={from}
                y={i * lanePx + 4}
                width={Math.max(0, to - from)}
                height={lanePx - 8}
                fill={colorOf(founder)}
              >
                <title>
                  trial {trial}, steps {from} to {to}: weights of trial {founder}
                </title>
              </rect>
            )),
          )}
          {lanes.map(({ trial, clones }, i) =>
            clones.map(({ donor, step, founder }) => {
              const row = rowOf.get(donor);
              if (row === undefined) return null;
              return (
                <line
                  key={`${trial} ${donor} ${step}`}
                  class="lane-clone"
                  x1={step}
                  x2={step}
                  y1={middle(row)}
                  y2={middle(i)}
                  stroke={colorOf(founder)}
                >
                  <title>
                    trial {trial} continues trial {donor} from step {step}
                  </title>
                </line>
              );
            }),
          )}
          {lanes.map(({ trial, promotions }, i) =>
            promotions.map((step, k) => (
              <line
                key={`${trial} ${k}`}
                class="lane-promotion"
                x1={step}
                x2={step}
                y1={i * lanePx + 1}
                y2={(i + 1) * lanePx - 1}
              >
                <title>
                  trial {trial} promoted at step {step}
                </title>
              </line>
            )),
          )}
        </svg>
        <div class="lane-axis muted small">
          {[0, 0.25, 0.5, 0.75, 1].map((share) => (
            <span key={share}>{formatStep(Math.round(share * width))}</span>
          ))}
        </div>
      </div>
    </div>
  );
}

function BranchTable({ branches }: { branches: readonly Branch[] }): JSX.Element {
  return (
    <ChartTable
      label="Clones and promotions"
      columns={[
        { label: 'step', cell: ({ step }: Branch) => step },
        { label: 'trial', cell: ({ trial }) => trial },
        {
          label: 'what',
          cell: ({ donor }) => (donor === null ? 'was promoted' : `continues trial ${donor}`),
        },
      ]}
      rows={branches}
      rowKey={(_, index) => index}
    />
  );
}
