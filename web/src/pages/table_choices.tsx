import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { formatColumns } from '../model/chosen_columns';
import { parseViews, renamedView, withView, type SavedView } from '../model/saved_views';
import { navigate, place, setQuery, sweepUrl, withQuery } from '../router';
import { readStored, writeStored } from '../stored';
import { Dialog, Field } from '../ui/dialog';
import { onDemand } from '../ui/on_demand';
import { copyText } from '../ui/parts';
import type { Column } from './trial_columns';

const ColumnsDialog = onDemand<Parameters<typeof import('./columns_dialog').ColumnsDialog>[0]>(
  'the columns',
  async () => (await import('./columns_dialog')).ColumnsDialog,
);

const columnsKey = (sweep: string): string => `attune-columns-${sweep}`;
const viewsKey = (sweep: string): string => `attune-views-${sweep}`;

/** The chosen columns as text: those of the link, or else those that this browser keeps. */
export function chosenColumns(sweep: string): string | undefined {
  return place.value.query.get('columns') ?? readStored(columnsKey(sweep));
}

/** Opens the choice of columns, which are kept for the sweep. */
export function ColumnsButton({
  sweep,
  all,
  shown,
}: {
  sweep: string;
  all: readonly Column[];
  shown: readonly Column[];
}): JSX.Element {
  const [open, setOpen] = useState(false);
  const choose = (keys: readonly string[] | undefined): void => {
    const text = keys && formatColumns(keys);
    writeStored(columnsKey(sweep), text);
    setQuery({ columns: text });
  };
  return (
    <>
      <button type="button" class="quiet" onClick={() => setOpen(true)}>
        Columns…
      </button>
      {open && (
        <ColumnsDialog
          all={all}
          chosen={shown.map(({ key }) => key)}
          onYes={choose}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

/** Views that this browser keeps for the sweep: filter, order, columns and chart under a name. */
export function ViewsChoice({ sweep }: { sweep: string }): JSX.Element {
  const [views, setViews] = useState<readonly SavedView[]>(() =>
    parseViews(readStored(viewsKey(sweep))),
  );
  const [asked, setAsked] = useState<'save' | 'rename'>();
  // A view keeps the columns, also those that only this browser knows.
  const columns = chosenColumns(sweep);
  const query = String(withQuery(place.value.query, { columns }));
  const current = views.find((view) => view.query === query);
  const renames = asked === 'rename' ? current : undefined;
  const keep = (next: readonly SavedView[]): void => {
    writeStored(viewsKey(sweep), next.length > 0 ? JSON.stringify(next) : undefined);
    setViews(next);
  };
  const choose = (value: string): void => {
    if (value === 'save' || value === 'rename') return setAsked(value);
    if (value === 'link')
      return void copyText(new URL(`${sweepUrl(sweep)}?${query}`, location.href).href);
    if (value === 'remove') return keep(views.filter((view) => view !== current));
    const view = views[Number(value)];
    if (view) navigate(`${sweepUrl(sweep)}?${view.query}`);
  };
  return (
    <>
      <select
        aria-label="Saved views"
        value={current ? String(views.indexOf(current)) : ''}
        onChange={(event) => {
          const { value } = event.currentTarget;
          event.currentTarget.value = '';
          choose(value);
        }}
      >
        <option value="">Views…</option>
        {views.map(({ name }, i) => (
          <option key={name} value={i}>
            {name}
          </option>
        ))}
        <option value="save">Save this view…</option>
        <option value="link">Copy a link to this view</option>
        {current && <option value="rename">Rename “{current.name}”…</option>}
        {current && <option value="remove">Delete “{current.name}”</option>}
      </select>
      {asked && (
        <Dialog
          title={renames ? `Rename “${renames.name}”` : 'Save this view'}
          action={renames ? 'Rename' : 'Save'}
          onYes={(typed) => {
            const name = typed.name?.trim() || 'view';
            keep(renames ? renamedView(views, renames, name) : withView(views, { name, query }));
            return Promise.resolve('');
          }}
          onClose={() => setAsked(undefined)}
        >
          <Field label="Name" hint="a view of this name is replaced">
            <input
              name="name"
              type="text"
              required
              maxLength={60}
              autocomplete="off"
              defaultValue={renames?.name}
            />
          </Field>
          {!renames && (
            <p class="muted dialog-note">
              This browser keeps the filter, the order, the columns and the chart. To share them,
              copy a link to the view.
            </p>
          )}
        </Dialog>
      )}
    </>
  );
}
