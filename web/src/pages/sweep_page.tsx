import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';

import { LiveSweep } from '../live/sweep_live';
import { axesOf } from '../model/axes';
import { brushFilter, parseBrushes } from '../model/brush';
import { formatSort, parseSort, pressColumn, sortTrials } from '../model/columns';
import { parseFilter, stateFilter } from '../model/filter';
import { formatCount } from '../model/numbers';
import type { SweepModel } from '../model/sweep_model';
import { place, setQuery } from '../router';
import { chooseColorBy } from '../ui/colors';
import { FilterBox, Loading, StateChips, Trouble } from '../ui/parts';
import { BrushChips } from './brush_chips';
import { ImportanceCard } from './importance_card';
import { BestCard, FrontCard, RungCard } from './sweep_cards';
import { SweepFile } from './sweep_file';
import { SweepHead } from './sweep_head';
import { SweepViews, chooseView } from './sweep_views';
import { trialColumns } from './trial_columns';
import { TrialTable } from './trial_table';
import { useLive } from './use_live';
import { WhatIfCard } from './what_if_card';

export function SweepPage({ id }: { id: string }): JSX.Element {
  const metric = place.value.query.get('metric') ?? undefined;
  const live = useLive(() => new LiveSweep(id, metric), [id, metric]);
  // Reading the version subscribes this page to the model, which changes in place.
  const version = live?.version.value ?? 0;
  // The page keeps the old model while it reads the curves of another metric.
  const kept = useRef<SweepModel>();
  const model = live?.model ?? kept.current;
  kept.current = model;
  if (live?.error.value) return <Trouble error={live.error.value} />;
  if (!live || !model) return <Loading what={`sweep ${id}`} />;
  return (
    <>
      <SweepHead sweep={model.sweep} onActed={live.refreshHeader} />
      {place.value.query.get('tab') === 'file' ? (
        <SweepFile sweep={model.sweep} />
      ) : (
        <Overview model={model} version={version} />
      )}
    </>
  );
}

function Overview({ model, version }: { model: SweepModel; version: number }): JSX.Element {
  const [hovered, setHovered] = useState<number>();
  const { query } = place.value;
  const { sweep } = model;

  const text = query.get('q') ?? '';
  const states = (query.get('state') ?? '').split(',').filter(Boolean);
  const sort = parseSort(query.get('sort') ?? undefined);
  const selected = query.has('trial') ? Number(query.get('trial')) : undefined;
  const view = chooseView(query.get('view'));
  const logarithmic = query.get('y') === 'log';
  const colorBy = chooseColorBy(query.get('color'), model.trials.size);

  const columns = useMemo(() => trialColumns(model, colorBy), [model, version, colorBy]);
  const unbrushed = useMemo(() => {
    const matchesText = parseFilter(text, columns);
    const matchesState = stateFilter(states);
    return [...model.trials.values()].filter((row) => matchesText(row) && matchesState(row));
  }, [columns, text, states.join()]);
  const brushText = query.get('brush');
  const brushes = useMemo(() => parseBrushes(brushText), [brushText]);
  const usesAxes = view === 'parallel' || brushText !== null;
  const axes = useMemo(
    () => (usesAxes ? axesOf(sweep, unbrushed, logarithmic) : []),
    [usesAxes, sweep.parameters, sweep.metrics, unbrushed, logarithmic],
  );
  const rows = useMemo(() => {
    const kept = unbrushed.filter(brushFilter(brushes, axes, sweep));
    return sortTrials(kept, sort, columns);
  }, [unbrushed, brushes, axes, sort.key, sort.descending]);

  const select = (number: number | undefined): void =>
    setQuery({ trial: number === undefined ? undefined : String(number) });

  return (
    <>
      <div class="overview">
        <SweepViews
          view={view}
          model={model}
          version={version}
          rows={rows}
          unbrushed={unbrushed}
          axes={axes}
          brushes={brushes}
          colorBy={colorBy}
          logarithmic={logarithmic}
          selected={selected}
          hovered={hovered}
          onSelect={select}
          onHover={setHovered}
        />
        <div class="side">
          {sweep.metrics.length > 1 ? <FrontCard sweep={sweep} /> : <BestCard sweep={sweep} />}
          {sweep.rungs.length > 0 && <RungCard model={model} />}
          <ImportanceCard sweep={sweep} />
          <WhatIfCard key={sweep.id} sweep={sweep} />
        </div>
      </div>
      <section class="panel" aria-label="Trials">
        <div class="table-head">
          <h2>
            Trials{' '}
            <span class="muted">
              {rows.length === model.trials.size
                ? formatCount(rows.length)
                : `${formatCount(rows.length)} of ${formatCount(model.trials.size)}`}
            </span>
          </h2>
          <StateChips
            counts={sweep.trials}
            chosen={states}
            onChange={(next) => setQuery({ state: next.join(',') })}
          />
          <BrushChips axes={axes} brushes={brushes} />
          <FilterBox
            value={text}
            what="trials"
            placeholder="Filter: lr<0.01  stopped  #17  ( / )"
            onChange={(q) => setQuery({ q })}
          />
        </div>
        <TrialTable
          columns={columns}
          rows={rows}
          sort={sort}
          best={sweep.best?.trial}
          selected={selected}
          hovered={hovered}
          onSort={(key) => setQuery({ sort: formatSort(pressColumn(sort, key)) })}
          onSelect={select}
          onHover={setHovered}
        />
      </section>
    </>
  );
}
