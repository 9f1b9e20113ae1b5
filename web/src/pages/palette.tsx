import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Sweep } from '../api/contract';
import { explain } from '../live/session';
import { fuzzySort } from '../model/fuzzy';
import { navigate, parseRoute, place, setQuery, sweepUrl, trialUrl } from '../router';
import { moreViews } from './views';

interface Command {
  name: string;
  /** Where it comes from: an action, a page, a view, a sweep or a trial. */
  kind: string;
  run(): void;
}

const mostShown = 50;

/** A dialog that finds actions of the page, views, pages, sweeps and trials by name. */
export function Palette({ onClose }: { onClose(): void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [query, setQueryText] = useState('');
  const [active, setActive] = useState(0);
  const [sweeps, setSweeps] = useState<readonly Sweep[]>([]);
  // The page does not change while the dialog is open.
  const [ofPage] = useState(commandsOfPage);
  useEffect(() => {
    dialog.current?.showModal();
    api.newestSweeps().then(setSweeps, explain);
  }, []);
  const commands = useMemo(
    () => [...trialCommand(query), ...ofPage, ...sweeps.map(sweepCommand)],
    [query, ofPage, sweeps],
  );
  const found = fuzzySort(query, commands, ({ name, kind }) => `${name} ${kind}`).slice(
    0,
    mostShown,
  );
  const chosen = Math.min(active, found.length - 1);

  const run = (command: Command | undefined): void => {
    if (!command) return;
    // An open dialog would keep the focus.
    dialog.current?.close();
    command.run();
  };
  const handleKey = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length > 0) {
      event.preventDefault();
      setActive((chosen + step + found.length) % found.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      run(found[chosen]);
    }
  };
  return (
    <dialog ref={dialog} class="palette" onClose={onClose} aria-label="Commands">
      <input
        type="text"
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
        placeholder="Action, page, view, sweep, or number of a trial"
        autocomplete="off"
        autofocus
        value={query}
        onInput={(event) => {
          setQueryText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={handleKey}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands">
        {found.map((command, index) => (
          <Option
            key={`${command.kind} ${command.name}`}
            index={index}
            command={command}
            isActive={index === chosen}
            onRun={() => run(command)}
          />
        ))}
      </ul>
      {found.length === 0 && <p class="muted none">Nothing matches.</p>}
    </dialog>
  );
}

function Option({
  index,
  command,
  isActive,
  onRun,
}: {
  index: number;
  command: Command;
  isActive: boolean;
  onRun(): void;
}): JSX.Element {
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isActive) item.current?.scrollIntoView({ block: 'nearest' });
  }, [isActive]);
  return (
    <li ref={item} id={`palette-${index}`} role="option" aria-selected={isActive} onClick={onRun}>
      <span>{command.name}</span>
      <span class="muted">{command.kind}</span>
    </li>
  );
}

/** The actions, links and views that the page shows, so that each user sees only what is allowed. */
function commandsOfPage(): Command[] {
  return [
    ...visibleControls('main .page-head .actions', 'action'),
    ...visibleControls('main .tabs', 'part'),
    ...visibleControls('main .segments', 'view'),
    ...viewCommands(),
    ...visibleControls('header.top nav', 'page'),
    ...visibleControls('header.top .top-right', 'action'),
  ];
}

function visibleControls(place: string, kind: string): Command[] {
  const selector = ['a[href]', 'button:enabled'].map((each) => `${place} ${each}`).join(', ');
  return [...document.querySelectorAll<HTMLElement>(selector)]
    .filter((control) => control.offsetParent !== null)
    .map((control) => ({ name: nameOf(control), kind, run: () => control.click() }))
    .filter(({ name }) => name !== '');
}

// A title ends with a key in parentheses.
function nameOf(control: HTMLElement): string {
  const label = control.getAttribute('aria-label') ?? control.textContent?.trim();
  return label || control.title.replace(/ \(.*\)$/, '');
}

function viewCommands(): Command[] {
  const choice = document.querySelector<HTMLSelectElement>('main select[aria-label="More views"]');
  return [...(choice?.options ?? [])]
    .filter(({ value }) => value in moreViews)
    .map(({ value, text }) => ({
      name: text,
      kind: 'view',
      run: () => setQuery({ view: value }),
    }));
}

function sweepCommand({ id, name }: Sweep): Command {
  return {
    name: name ? `${id} ${name}` : id,
    kind: 'sweep',
    run: () => navigate(sweepUrl(id)),
  };
}

/** The trial that a query names: "17" or "#17" on the page of a sweep, "s1/17" anywhere. */
function trialCommand(query: string): Command[] {
  const named = /^(?:(s\d+)\/)?#?(\d+)$/.exec(query.trim());
  if (!named) return [];
  const route = parseRoute(place.value.path);
  const sweep = named[1] ?? ('sweep' in route ? route.sweep : undefined);
  if (sweep === undefined) return [];
  const trial = Number(named[2]);
  return [
    {
      name: `${sweep}/${trial}`,
      kind: 'trial',
      run: () => navigate(trialUrl(sweep, trial)),
    },
  ];
}
