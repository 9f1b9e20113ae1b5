import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { LiveSweep } from '../live/sweep_live';
import {
  formatSort,
  parseSort,
  pressColumn,
  searchedParameters,
  sortTrials,
} from '../model/columns';
import { parseFilter, stateFilter } from '../model/filter';
import { formatCount } from '../model/numbers';
import { cloneNote, rungNote } from '../model/rungs';
import { curvesSummary } from '../model/summary';
import type { SweepModel, TrialRow } from '../model/sweep_model';
import { place, setQuery } from '../router';
import { chooseColorBy, linesOf, type ColorBy } from '../ui/colors';
import { CurveChart } from '../ui/curve_chart';
import { Icon } from '../ui/icons';
import { useKeys } from '../ui/keys';
import { Loading, StateChips, Trouble } from '../ui/parts';
import { paintEpoch } from '../ui/theme';
import { ImportanceCard } from './importance_card';
import { BestCard, FrontCard, RungCard } from './sweep_cards';
import { SweepFile } from './sweep_file';
import { SweepHead } from './sweep_head';
import { TrialTable } from './trial_table';
import { WhatIfCard } from './what_if_card';

export function SweepPage({ id }: { id: string }): JSX.Element {
  const metric = place.value.query.get('metric') ?? undefined;
  const live = useLiveSweep(id, metric);
  // Read, so that this page follows the model, which is changed in place.
  const version = live?.version.value ?? 0;
  // While another metric's curves are read, the page stays as it is.
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

function useLiveSweep(id: string, metric: string | undefined): LiveSweep | undefined {
  const [live, setLive] = useState<LiveSweep>();
  useEffect(() => {
    const made = new LiveSweep(id, metric);
    setLive(made);
    return () => made.close();
  }, [id, metric]);
  return live;
}

function Overview({ model, version }: { model: SweepModel; version: number }): JSX.Element {
  const [hovered, setHovered] = useState<number>();
  const filterBox = useRef<HTMLInputElement>(null);
  const { query } = place.value;
  const { sweep } = model;

  const text = query.get('q') ?? '';
  const states = (query.get('state') ?? '').split(',').filter(Boolean);
  const sort = parseSort(query.get('sort') ?? undefined);
  const selected = query.has('trial') ? Number(query.get('trial')) : undefined;
  const colorBy = chooseColorBy(query.get('color'), model.trials.size);

  const rows = useMemo(() => {
    const matchesText = parseFilter(text);
    const matchesState = stateFilter(states);
    const kept = [...model.trials.values()].filter((row) => matchesText(row) && matchesState(row));
    return sortTrials(kept, sort, sweep.metric);
  }, [version, text, states.join(), sort.key, sort.descending]);
  const epoch = paintEpoch.value;
  const lines = useMemo(() => linesOf(rows, model.curves, colorBy), [rows, colorBy, epoch]);
  const parameters = useMemo(
    () => searchedParameters(sweep.parameters, model.trials.values()),
    [sweep.parameters, model.trials.size],
  );

  useKeys({
    '/': (event) => {
      event.preventDefault();
      filterBox.current?.focus();
    },
  });
  const select = (number: number | undefined): void =>
    setQuery({ trial: number === undefined ? undefined : String(number) });

  const noteOf = (row: TrialRow): string =>
    rungNote(row, sweep) || cloneNote(model.curves.get(row.number)?.clones ?? []);

  return (
    <>
      <div class="overview">
        <section class="panel" aria-label="Learning curves">
          <CurveChart
            lines={lines}
            version={version}
            metric={model.curveMetric}
            time={sweep.time_attr || 'step'}
            logarithmic={query.get('y') === 'log'}
            rungs={sweep.rungs}
            maxStep={sweep.max_step}
            best={sweep.best?.trial}
            selected={selected}
            hovered={hovered}
            summary={curvesSummary(sweep, model.curves, model.curveMetric)}
            onHover={setHovered}
            onSelect={select}
            onLogarithmic={(on) => setQuery({ y: on ? 'log' : undefined })}
            controls={<ChartControls model={model} colorBy={colorBy} />}
          />
        </section>
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
          <div class="filter">
            <Icon name="search" />
            <input
              ref={filterBox}
              type="search"
              value={text}
              placeholder="Filter: lr<0.01  stopped  #17  ( / )"
              aria-label="Filter trials"
              spellcheck={false}
              onInput={(event) => setQuery({ q: event.currentTarget.value })}
              onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
            />
          </div>
        </div>
        <TrialTable
          rows={rows}
          parameters={parameters}
          metric={sweep.metric}
          sort={sort}
          colorBy={colorBy}
          best={sweep.best?.trial}
          selected={selected}
          hovered={hovered}
          noteOf={noteOf}
          onSort={(key) => setQuery({ sort: formatSort(pressColumn(sort, key)) })}
          onSelect={select}
          onHover={setHovered}
        />
      </section>
    </>
  );
}

function ChartControls({ model, colorBy }: { model: SweepModel; colorBy: ColorBy }): JSX.Element {
  const own = model.sweep.metric.name;
  const names = [own, ...[...model.metricNames].filter((name) => name !== own).sort()];
  return (
    <>
      {names.length > 1 && (
        <label class="pick">
          metric
          <select
            value={model.curveMetric}
            onChange={(event) => {
              const chosen = event.currentTarget.value;
              setQuery({ metric: chosen === own ? undefined : chosen });
            }}
          >
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <label class="pick">
        colour
        <select
          value={colorBy}
          onChange={(event) => setQuery({ color: event.currentTarget.value })}
        >
          <option>trial</option>
          <option>state</option>
        </select>
      </label>
    </>
  );
}
