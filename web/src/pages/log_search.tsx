import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { BoundedSearch, SearchError } from '../live/bounded_search';
import type { LogPlace } from '../live/log_live';
import { explain } from '../live/session';
import { downloadLog, searchLog } from '../live/whole_log';
import { searchPattern, type LogMatch } from '../model/logs/log_search';
import { formatBytes, formatCount, formatPercent, plural } from '../model/numbers';
import { saveAs } from '../ui/export/save_as';

const mostMatches = 500;

interface Found {
  /** What was searched for. */
  key: string;
  matches: readonly LogMatch[];
  text: string;
}

/** Searches the whole log of a rank, and saves it as a file. */
export function LogSearchBar({ at }: { at: LogPlace }): JSX.Element {
  const [text, setText] = useState('');
  const [matchCase, setMatchCase] = useState(false);
  const [share, setShare] = useState<number>();
  const [found, setFound] = useState<Found>();
  const [current, setCurrent] = useState(0);
  const [trouble, setTrouble] = useState('');
  const abort = useRef<AbortController>();
  useEffect(() => () => abort.current?.abort(), []);

  const work = async (action: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    setTrouble('');
    try {
      await action(controller.signal);
    } catch (error) {
      const isOfSearch = error instanceof SyntaxError || error instanceof SearchError;
      setTrouble(isOfSearch ? error.message : (explain(error)?.message ?? ''));
    }
    if (abort.current === controller) setShare(undefined);
  };
  const key = `${matchCase} ${text}`;
  const move = (by: number): void => {
    const count = found?.matches.length ?? 0;
    if (count > 0) setCurrent((current + by + count) % count);
  };
  const moveByKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || found?.key !== key) return;
    event.preventDefault();
    move(event.shiftKey ? -1 : 1);
  };
  const search = (event: Event): void => {
    event.preventDefault();
    void work(async (signal) => {
      const pattern = searchPattern(text, matchCase);
      const searching = new BoundedSearch(pattern, mostMatches + 1, signal);
      setFound(undefined);
      setShare(0);
      const all = await searchLog(at, searching, signal, setShare);
      const matches = all.slice(0, mostMatches);
      const count = plural(matches.length, 'line');
      setFound({
        key,
        matches,
        text:
          all.length > mostMatches
            ? `The first ${count} that match.`
            : `${count} of the whole log match.`,
      });
      setCurrent(0);
    });
  };
  const download = (): void =>
    void work(async (signal) => {
      const { sweep, trial, attempt, rank } = at;
      const { blob, missing } = await downloadLog(at, signal);
      saveAs(blob, `${sweep}-${trial}-attempt-${attempt}-rank-${rank}.log`);
      if (missing > 0)
        setTrouble(
          `The file lacks the last ${formatBytes(missing)}, because the browser holds it in memory. ` +
            `\`attune trial logs ${sweep}/${trial}\` prints the whole log.`,
        );
    });
  return (
    <>
      <form class="controls" role="search" onSubmit={search}>
        <label class="pick">
          find
          <input
            type="search"
            required
            placeholder="text or /regular expression/"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={moveByKey}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={matchCase}
            onChange={(event) => setMatchCase(event.currentTarget.checked)}
          />
          match case
        </label>
        <button type="submit">Search the log</button>
        <button type="button" class="quiet" onClick={download}>
          Download the log
        </button>
      </form>
      {share !== undefined && <p class="muted small">{formatPercent(share)} searched…</p>}
      {trouble && (
        <p class="failure" role="alert">
          {trouble}
        </p>
      )}
      {found && share === undefined && <Matches found={found} current={current} onMove={move} />}
    </>
  );
}

/** The lines that match, one of which is the current one. */
function Matches({
  found,
  current,
  onMove,
}: {
  found: Found;
  current: number;
  onMove(by: number): void;
}): JSX.Element {
  const { matches, text } = found;
  const lines = useRef<HTMLPreElement>(null);
  useEffect(
    () => lines.current?.children[current]?.scrollIntoView({ block: 'nearest' }),
    [found, current],
  );
  return (
    <div data-testid="log-matches">
      <div class="controls">
        <p class="muted small" role="status">
          {text}
          {matches.length > 0 && (
            <>
              {' '}
              <span data-testid="current-match">
                {formatCount(current + 1)} of {formatCount(matches.length)}
              </span>
            </>
          )}
        </p>
        {matches.length > 0 && (
          <>
            <button
              type="button"
              class="quiet"
              aria-label="Previous match"
              title="Shift+Enter in the field"
              onClick={() => onMove(-1)}
            >
              ↑
            </button>
            <button
              type="button"
              class="quiet"
              aria-label="Next match"
              title="Enter in the field"
              onClick={() => onMove(1)}
            >
              ↓
            </button>
          </>
        )}
      </div>
      {matches.length > 0 && (
        <pre ref={lines} class="code log-matches" tabIndex={0} aria-label="Lines that match">
          {matches.map((match, i) => (
            <span key={match.offset} aria-current={i === current} title={`byte ${match.offset}`}>
              {match.line.slice(0, match.begin)}
              <mark>{match.line.slice(match.begin, match.end)}</mark>
              {match.line.slice(match.end)}
              {'\n'}
            </span>
          ))}
        </pre>
      )}
    </div>
  );
}
