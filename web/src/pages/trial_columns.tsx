import type { TrialState } from '../api/contract';
import { bestFirst, searchedParameters, type ColumnData, type Value } from '../model/columns';
import { formatConfig, formatMetric } from '../model/numbers';
import { trialSentence } from '../model/reason';
import { cloneNote, rungNote } from '../model/rungs';
import { trialStates } from '../model/states';
import type { SweepModel, TrialRow } from '../model/sweep_model';
import { formatDuration } from '../model/time';
import { trialUrl } from '../router';
import { colorToken, type ColorBy } from '../ui/colors';
import type { TableColumn } from '../ui/data_table';
import { StateLabel } from '../ui/icons';

/** A column of the trial table. */
export interface Column extends ColumnData, TableColumn<TrialRow> {
  label: string;
  widthPx: number;
  /** The column takes the width that the others leave. */
  grows?: true;
  /** The tooltip of a cell. */
  title?(row: TrialRow): string;
}

/** The columns of a sweep's trial table, in their order. Their cells read the model as it is now. */
export function trialColumns(model: SweepModel, colorBy: ColorBy): Column[] {
  const { metric, parameters } = model.sweep;
  const rows = [...model.trials.values()];
  const noteOf = (row: TrialRow): string =>
    rungNote(row, model.sweep) || cloneNote(model.curves.get(row.number)?.clones ?? []);
  const highest = metric.mode === 'max' ? 'highest' : 'lowest';
  return [
    {
      key: 'number',
      label: 'trial',
      value: (row) => row.number,
      cell: (row) => (
        <a href={trialUrl(row.sweep, row.number)} class="trial-link" tabIndex={-1}>
          <span class="line-swatch" style={{ background: `var(${colorToken(row, colorBy)})` }} />
          {row.number}
        </a>
      ),
      sortable: true,
      filterable: true,
      widthPx: 84,
    },
    {
      key: 'state',
      label: 'state',
      value: (row) => row.state,
      compare: (a, b) => stateRank(a) - stateRank(b),
      cell: (row) => (
        <>
          <StateLabel state={row.state} />
          {noteOf(row) && <span class="muted small"> {noteOf(row)}</span>}
        </>
      ),
      sortable: true,
      filterable: true,
      widthPx: rows.some(noteOf) ? 196 : 124,
    },
    {
      key: 'best',
      label: metric.name,
      value: (row) => row.best,
      compare: bestFirst(metric.mode),
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
    ...searchedParameters(parameters).map((name) => parameterColumn(name, rows)),
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

function parameterColumn(name: string, rows: readonly TrialRow[]): Column {
  const value = (row: TrialRow): Value => row.config[name];
  const first = rows.map(value).find((each) => each !== undefined);
  return {
    key: `config.${name}`,
    label: name,
    value,
    cell: (row) => formatConfig(row.config[name]),
    title: (row) => String(value(row) ?? 'not active'),
    sortable: true,
    filterable: true,
    widthPx: Math.min(180, Math.max(108, name.length * 8 + 36)),
    numeric: typeof first === 'number',
  };
}

function stateRank(state: Value): number {
  return trialStates.indexOf(state as TrialState);
}
