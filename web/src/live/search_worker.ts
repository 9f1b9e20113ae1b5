import { LogSearch, type LogMatch } from '../model/logs/log_search';

/** What the page sends to the worker: a new search, a piece of the log, or the end of the log. */
export type SearchRequest =
  | { pattern: RegExp; most: number }
  | { bytes: Uint8Array<ArrayBuffer>; offset: number }
  | 'finish';

/** The answer to each request. `matches` has all lines found so far. */
export interface SearchAnswer {
  matches: readonly LogMatch[];
  isFull: boolean;
}

let search: LogSearch | undefined;

self.onmessage = ({ data }: MessageEvent<SearchRequest>): void => {
  if (data === 'finish') search?.finish();
  else if ('pattern' in data) search = new LogSearch(data.pattern, data.most);
  else search?.add(data.bytes, data.offset);
  const answer: SearchAnswer = { matches: search?.matches ?? [], isFull: search?.isFull ?? true };
  self.postMessage(answer);
};
