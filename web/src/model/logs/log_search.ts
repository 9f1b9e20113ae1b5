/** A line of a log that matches. */
export interface LogMatch {
  /** The first byte of the line. */
  offset: number;
  /** The line; only the part around the match if it is long. */
  line: string;
  /** The place of the match in `line`. */
  begin: number;
  end: number;
}

const mostShownChars = 2000;
/** A longer line is searched in parts of this length. */
const mostLineBytes = 1 << 20;

/** The pattern of a search: plain text, or a regular expression between slashes. Throws SyntaxError. */
export function searchPattern(text: string, matchCase: boolean): RegExp {
  const flags = matchCase ? '' : 'i';
  const expression = /^\/(.+)\/$/.exec(text)?.[1];
  if (expression !== undefined) return new RegExp(expression, flags);
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), flags);
}

/** Finds matching lines in a log that arrives in pieces of bytes. */
export class LogSearch {
  readonly matches: LogMatch[] = [];
  /** The last line may continue in the next piece. */
  private rest = new Uint8Array();
  private at = 0;
  private readonly decoder = new TextDecoder();

  constructor(
    private readonly pattern: RegExp,
    private readonly most: number,
  ) {}

  get isFull(): boolean {
    return this.matches.length >= this.most;
  }

  add(bytes: Uint8Array, offset: number): void {
    if (offset !== this.at + this.rest.length) {
      this.finish();
      this.at = offset;
    }
    const whole = new Uint8Array(this.rest.length + bytes.length);
    whole.set(this.rest);
    whole.set(bytes, this.rest.length);
    const end = whole.lastIndexOf(10) + 1;
    this.search(whole.subarray(0, end));
    this.at += end;
    this.rest = whole.slice(end);
    if (this.rest.length >= mostLineBytes) this.finish();
  }

  /** Searches the last line. */
  finish(): void {
    this.search(this.rest);
    this.at += this.rest.length;
    this.rest = new Uint8Array();
  }

  private search(bytes: Uint8Array): void {
    let begin = 0;
    while (begin < bytes.length && !this.isFull) {
      const newline = bytes.indexOf(10, begin);
      const end = newline < 0 ? bytes.length : newline;
      const line = this.decoder.decode(bytes.subarray(begin, end));
      const found = this.pattern.exec(line);
      if (found) {
        const first = Math.max(0, found.index - mostShownChars / 2);
        const at = found.index - first;
        this.matches.push({
          offset: this.at + begin,
          line: line.slice(first, first + mostShownChars),
          begin: at,
          end: at + Math.max(1, found[0].length),
        });
      }
      begin = end + 1;
    }
  }
}
