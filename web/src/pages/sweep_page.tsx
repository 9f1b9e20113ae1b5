import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { mayChange } from '../live/session';
import { LiveSweep, type RowQuery } from '../live/sweep_live';
import { axesOf } from '../model/axes';
import { brushFilter, brushQuery, parseBrushes } from '../model/brush';
import { chooseColumns } from '../model/chosen_columns';
import { formatSort, parseSort, pressColumn, type ColumnData } from '../model/columns';
import { emptyReason } from '../model/empty';
import {
  FilterError,
  joinFilters,
  parseFilter,
  stateFilter,
  type Predicate,
} from '../model/filter';
import { formatCount } from '../model/numbers';
import { countTrials } from '../model/states';
import type { SweepModel } from '../model/sweep_model';
import { sweepTitle } from '../model/title';
import { place, setQuery } from '../router';
import { chooseColorBy } from '../ui/colors';
import { FilterBox, Loading, StateChips, Trouble } from '../ui/parts';
import { BrushChips } from './brush_chips';
import { CompareButton } from './compare/picked';
import { CostCard } from './cost_card';
import { EmptyNote, clearFilter } from './empty_note';
import { ImportanceCard } from './importance_card';
import { mayEnqueue } from './sweep_actions';
import { BestCard, FrontCard, RungCard } from './sweep_cards';
import type { EnqueueStart } from './sweep_dialogs';
import { SweepFile } from './sweep_file';
import { SweepHead } from './sweep_head';
import { SweepViews, chooseView } from './sweep_views';
import { ColumnsButton, ViewsChoice, chosenColumns } from './table_choices';
import { trialColumns } from './trial_columns';
import { TrialTable } from './trial_table';
import { useLive } from './use_live';
import { usePaced, useRowSource, useRowWindow, useSortedRows } from './use_rows';
import { useTitle } from './use_title';
import { FailuresCard, FirstCause } from './views';
import { WhatIfCard } from './what_if_card';

export function SweepPage({ id }: { id: string }): JSX.Element {
  const metric = place.value.query.get('metric') ?? undefined;
  const live = useLive(() => {
    const { query } = place.peek();
    return new LiveSweep(id, metric, rowQuery(query, query.get('q') ?? ''));
  }, [id]);
  useEffect(() => live?.showMetric(metric), [live, metric]);
  const [enqueueing, enqueue] = useState<EnqueueStart>();
  // Reading the version subscribes this page to the model, which changes in place.
  const version = live?.version.value ?? 0;
  const model = live?.model;
  useTitle(model && sweepTitle(model.sweep));
  if (live?.error.value) return <Trouble error={live.error.value} />;
  if (!live || !model) return <Loading what={`sweep ${id}`} />;
  return (
    <>
      <SweepHead
        sweep={model.sweep}
        enqueueing={enqueueing}
        onEnqueue={enqueue}
        onActed={live.refreshHeader}
      />
      {place.value.query.get('tab') === 'file' ? (
        <SweepFile sweep={model.sweep} />
      ) : (
        <Overview live={live} model={model} version={version} onEnqueue={enqueue} />
      )}
    </>
  );
}

function NoRows({ model }: { model: SweepModel }): JSX.Element {
  if (model.trials.size === 0)
    return <EmptyNote reason={emptyReason(model.sweep, 0, model.sweep.metric.name)} />;
  return (
    <>
      No trial matches the filter.{' '}
      <button type="button" onClick={clearFilter}>
        Clear the filter
      </button>
    </>
  );
}

// The reason of a trial is a sentence of the page; the server has no order for it.
function rowQuery(query: URLSearchParams, text: string, brushes = ''): RowQuery {
  const states = query.get('state');
  const filter = joinFilters(text, states ? `state:${states}` : '', brushes);
  const order = query.get('sort') ?? 'best';
  return {
    order_by: /^-?reason$/.test(order) ? 'number' : order,
    filter: filter || undefined,
  };
}

/** A filter, or the newest one that could be parsed and the error. */
function useFilter(
  text: string,
  columns: readonly ColumnData[],
): { matches: Predicate; used: string; error: FilterError | undefined } {
  const newest = useRef<{ matches: Predicate; used: string }>({ matches: () => true, used: '' });
  return useMemo(() => {
    try {
      newest.current = { matches: parseFilter(text, columns), used: text };
      return { ...newest.current, error: undefined };
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      return { ...newest.current, error };
    }
  }, [text, columns]);
}

// Charts of very many trials follow the table less often than it changes.
const pacedMs = 1000;
const manyTrials = 2000;
const mostChartRows = 10_000;

function Overview({
  live,
  model,
  version,
  onEnqueue,
}: {
  live: LiveSweep;
  model: SweepModel;
  version: number;
  onEnqueue(start: EnqueueStart): void;
}): JSX.Element {
  const [hovered, setHovered] = useState<number>();
  const { query } = place.value;
  const { sweep } = model;

  const text = query.get('q') ?? '';
  const stateText = query.get('state') ?? '';
  const states = stateText.split(',').filter(Boolean);
  const sort = parseSort(query.get('sort') ?? undefined);
  const selected = query.has('trial') ? Number(query.get('trial')) : undefined;
  const view = chooseView(query.get('view'));
  const logarithmic = query.get('y') === 'log';
  const total = countTrials(sweep.trials);
  const colorBy = chooseColorBy(query.get('color'), total);

  const { hasClones } = model.curves;
  const columns = useMemo(
    () => trialColumns(model, colorBy),
    [
      model,
      sweep.parameters,
      sweep.metric,
      sweep.rungs,
      hasClones,
      colorBy,
      model.metricNames.size,
    ],
  );
  const columnText = chosenColumns(sweep.id);
  const shownColumns = useMemo(() => chooseColumns(columns, columnText), [columns, columnText]);
  const filter = useFilter(text, columns);
  const matches = useMemo((): Predicate => {
    const matchesState = stateFilter(states);
    return (row) => matchesState(row) && filter.matches(row);
  }, [filter.matches, stateText]);
  const sorted = useSortedRows(model, matches, sort, columns);

  const brushText = query.get('brush');
  const brushes = useMemo(() => parseBrushes(brushText), [brushText]);
  const usesAxes = view === 'parallel' || brushText !== null;
  const queryKey = `${filter.used} ${stateText}`;
  const paced = usePaced(
    sorted,
    `${queryKey} ${sorted.length === 0}`,
    total > manyTrials ? pacedMs : 0,
  );
  const axes = useMemo(
    () => (usesAxes ? axesOf(sweep, paced, logarithmic) : []),
    [usesAxes, sweep.parameters, sweep.metrics, paced, logarithmic],
  );
  const rows = useMemo(
    () => (brushText === null ? sorted : sorted.filter(brushFilter(brushes, axes, sweep))),
    [sorted, brushes, axes],
  );

  const kept = useRowSource(model, rows);
  const window = useRowWindow(
    live,
    model,
    rowQuery(query, filter.used, brushQuery(brushes, axes)),
    view === 'curves' ? 0 : mostChartRows,
  );
  const source = live.isWindowed ? window : kept;
  const isFiltered = filter.used !== '' || states.length > 0 || brushText !== null;

  const attempts = useMemo(
    () => [...model.trials.values()].reduce((sum, row) => sum + row.attempt_count, 0),
    [model, version],
  );
  const select = (number: number | undefined): void =>
    setQuery({ trial: number === undefined ? undefined : String(number) });
  const enqueueCopy = (number: number): void => {
    const row = model.trials.get(number);
    if (row) onEnqueue({ config: row.config, source: `trial ${number}` });
  };
  const onEnqueueCopy = mayEnqueue(sweep) ? enqueueCopy : undefined;
  const shown = isFiltered ? source.length : total;

  return (
    <>
      {sweep.state === 'failed' && view !== 'failures' && <FirstCause sweep={sweep} />}
      <div class="overview">
        <SweepViews
          view={view}
          live={live}
          model={model}
          version={version}
          rows={live.isWindowed ? window.read : rows}
          unbrushed={live.isWindowed ? window.read : paced}
          partial={
            live.isWindowed && window.read.length < window.length
              ? ` The first ${formatCount(window.read.length)} of ${formatCount(window.length)} trials in the order of the table.`
              : ''
          }
          axes={axes}
          brushes={brushes}
          filter={isFiltered ? `${queryKey} ${brushText ?? ''}` : ''}
          colorBy={colorBy}
          logarithmic={logarithmic}
          selected={selected}
          hovered={hovered}
          onSelect={select}
          onHover={setHovered}
          onEnqueueCopy={onEnqueueCopy}
        />
        <div class="side">
          {sweep.metrics.length > 1 ? <FrontCard sweep={sweep} /> : <BestCard sweep={sweep} />}
          {(sweep.trials.failed > 0 || attempts > model.trials.size) && (
            <FailuresCard sweep={sweep} attempts={attempts} />
          )}
          {sweep.rungs.length > 0 && !live.isWindowed && <RungCard model={model} />}
          <CostCard key={sweep.id} sweep={sweep} />
          <ImportanceCard sweep={sweep} />
          {mayChange.value && <WhatIfCard key={sweep.id} sweep={sweep} />}
        </div>
      </div>
      <section class="panel" aria-label="Trials">
        <div class="table-head">
          <h2>
            Trials{' '}
            <span class="muted">
              {shown === total
                ? formatCount(total)
                : `${formatCount(shown)} of ${formatCount(total)}`}
            </span>
          </h2>
          <StateChips
            counts={sweep.trials}
            chosen={states}
            onChange={(next) => setQuery({ state: next.join(',') })}
          />
          <BrushChips axes={axes} brushes={brushes} />
          <CompareButton sweep={sweep.id} />
          <ColumnsButton sweep={sweep.id} all={columns} shown={shownColumns} />
          <ViewsChoice sweep={sweep.id} />
          <FilterBox
            value={text}
            what="trials"
            placeholder="Filter: lr<0.01  stopped  #17  ( / )"
            error={filter.error?.message}
            onChange={(q) => setQuery({ q })}
          />
        </div>
        <TrialTable
          columns={shownColumns}
          rows={source}
          sort={sort}
          best={sweep.best?.trial}
          selected={selected}
          hovered={hovered}
          cellRevision={`${sweep.rungs.join()} ${model.curves.cloneRevision}`}
          empty={<NoRows model={model} />}
          onSort={(key) => setQuery({ sort: formatSort(pressColumn(sort, key)) })}
          onSelect={select}
          onHover={setHovered}
          onEnqueueCopy={onEnqueueCopy}
        />
      </section>
    </>
  );
}
