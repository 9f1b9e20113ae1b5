import type { Parameter, TrialState } from '../api/contract';
import { bestFirst, searchedParameters, type ColumnData, type Value } from '../model/columns';
import { formatConfig, formatMetric, fromWire } from '../model/numbers';
import { trialSentence } from '../model/reason';
import { cloneNote, rungNote } from '../model/rungs';
import { trialStates } from '../model/states';
import type { SweepModel, TrialRow } from '../model/sweep_model';
import { formatDuration } from '../model/time';
import { trialUrl } from '../router';
import { colorToken, type ColorBy } from '../ui/colors';
import type { TableColumn } from '../ui/data_table';
import { StateLabel } from '../ui/icons';
import { Tags, When } from '../ui/parts';
import { PickBox } from './compare/picked';

/** A column of the trial table. */
export interface Column extends ColumnData, TableColumn<TrialRow> {
  label: string;
  widthPx: number;
  /** Shown only if the user has chosen it. */
  isOptional?: true;
  /** The column takes the width that the others leave. */
  grows?: true;
  /** The tooltip of a cell. */
  title?(row: TrialRow): string;
}

/** All columns of a sweep's trial table, in their order. Their cells read the model as it is now. */
export function trialColumns(model: SweepModel, colorBy: ColorBy): Column[] {
  const { metric, parameters, rungs } = model.sweep;
  const noteOf = (row: TrialRow): string =>
    rungNote(row, model.sweep) || cloneNote(model.curves.clonesOf(row.number));
  const hasNotes = rungs.length > 0 || model.curves.hasClones;
  const highest = metric.mode === 'max' ? 'highest' : 'lowest';
  return [
    {
      key: 'number',
      label: 'trial',
      value: (row) => row.number,
      cell: (row) => (
        <>
          <PickBox number={row.number} />
          <a href={trialUrl(row.sweep, row.number)} class="trial-link" tabIndex={-1}>
            <span class="line-swatch" style={{ background: `var(${colorToken(row, colorBy)})` }} />
            {row.number}
          </a>
        </>
      ),
      sortable: true,
      filterable: true,
      widthPx: 108,
    },
    {
      key: 'state',
      label: 'state',
      value: (row) => row.state,
      order: stateRank,
      cell: (row) => (
        <>
          <StateLabel state={row.state} />
          {noteOf(row) && <span class="muted small"> {noteOf(row)}</span>}
        </>
      ),
      sortable: true,
      filterable: true,
      widthPx: hasNotes ? 196 : 124,
    },
    {
      key: 'best',
      label: metric.name,
      value: (row) => row.best,
      order: bestFirst(metric.mode),
      cell: (row) => (
        <>
          {row.number === model.sweep.best?.trial && <span class="tag">best</span>}{' '}
          <span class="value">{row.best === undefined ? '' : formatMetric(row.best)}</span>
        </>
      ),
      sortable: true,
      filterable: true,
      widthPx: Math.max(128, metric.name.length * 8 + 40),
      numeric: true,
      hint: `Sort by the best ${metric.name} of each trial; the ${highest} is best`,
    },
    {
      key: 'step',
      label: 'step',
      value: (row) => row.step,
      cell: (row) => row.step || '',
      sortable: true,
      filterable: true,
      widthPx: 72,
      numeric: true,
    },
    {
      key: 'seconds',
      label: 'time',
      value: (row) => row.seconds,
      cell: (row) => (row.seconds > 0 ? formatDuration(row.seconds) : ''),
      sortable: true,
      filterable: true,
      widthPx: 108,
      numeric: true,
    },
    ...searchedParameters(parameters).map(parameterColumn),
    ...[...model.metricNames].filter((name) => name !== metric.name).map(metricColumn),
    {
      key: 'attempts',
      label: 'attempts',
      value: (row) => row.attempt_count,
      cell: (row) => row.attempt_count || '',
      sortable: true,
      filterable: false,
      isOptional: true,
      widthPx: 88,
      numeric: true,
    },
    {
      key: 'tags',
      label: 'tags',
      value: (row) => row.tags.join(', ') || undefined,
      cell: (row) => <Tags tags={row.tags} />,
      title: (row) => row.tags.join(', '),
      sortable: false,
      filterable: false,
      isOptional: true,
      widthPx: 180,
      class: 'tags',
    },
    timeColumn('created', (row) => row.created),
    timeColumn('ended', (row) => row.ended),
    {
      key: 'reason',
      label: 'reason',
      value: trialSentence,
      cell: trialSentence,
      title: trialSentence,
      sortable: true,
      filterable: true,
      widthPx: 380,
      grows: true,
      class: 'reason',
    },
  ];
}

function metricColumn(name: string): Column {
  const value = (row: TrialRow): Value => {
    const last = row.metrics[name];
    return last === undefined ? undefined : fromWire(last);
  };
  return {
    key: `metrics.${name}`,
    label: name,
    value,
    cell: (row) => {
      const last = value(row);
      return last === undefined ? '' : formatMetric(Number(last));
    },
    hint: `The last ${name} of each trial`,
    sortable: true,
    filterable: false,
    isOptional: true,
    widthPx: Math.min(180, Math.max(108, name.length * 8 + 36)),
    numeric: true,
  };
}

function timeColumn(key: 'created' | 'ended', timeOf: (row: TrialRow) => string | null): Column {
  return {
    key,
    label: key,
    value: (row) => timeOf(row) ?? undefined,
    cell: (row) => <When time={timeOf(row)} />,
    sortable: true,
    filterable: false,
    isOptional: true,
    widthPx: 156,
  };
}

function parameterColumn({ name, type, values }: Parameter): Column {
  const value = (row: TrialRow): Value => row.config[name];
  return {
    key: `config.${name}`,
    label: name,
    value,
    cell: (row) => formatConfig(row.config[name]),
    title: (row) => String(value(row) ?? 'not active'),
    sortable: true,
    filterable: true,
    widthPx: Math.min(180, Math.max(108, name.length * 8 + 36)),
    numeric: type === 'categorical' ? typeof values?.[0] === 'number' : true,
  };
}

function stateRank(state: Value): number {
  return trialStates.indexOf(state as TrialState);
}
