/** The end of a growing log. Positions are bytes of the file. */
export class LogTail {
  private chunks: { begin: number; text: string }[] = [];
  private decoder = new TextDecoder();
  private next = 0;

  /** The position of the first byte held. Earlier bytes can be read and prepended. */
  get begin(): number {
    return this.chunks[0]?.begin ?? this.next;
  }

  /** The position after the last byte held, where reading continues. */
  get end(): number {
    return this.next;
  }

  get text(): string {
    return this.chunks.map((chunk) => chunk.text).join('');
  }

  /** Bytes that do not continue those held (another file, a truncated file) replace them. */
  append(bytes: Uint8Array, offset: number): void {
    if (offset !== this.next) {
      this.chunks = [];
      this.decoder = new TextDecoder();
    }
    const cut = this.chunks.length === 0 && offset > 0 ? firstLineEnd(bytes) : 0;
    const text = clean(this.decoder.decode(bytes.subarray(cut), { stream: true }));
    this.next = offset + bytes.length;
    if (text) this.chunks.push({ begin: offset + cut, text });
    this.dropEarliest();
  }

  /** Adds bytes that end at `begin`, or before a gap, from their first whole line on. */
  prepend(bytes: Uint8Array, offset: number): void {
    const cut = offset > 0 ? firstLineEnd(bytes) : 0;
    const isBeforeGap = offset + bytes.length < this.begin && bytes.at(-1) !== newline;
    const text = clean(new TextDecoder().decode(bytes.subarray(cut))) + (isBeforeGap ? '\n' : '');
    this.chunks.unshift({ begin: offset + cut, text });
  }

  private dropEarliest(): void {
    let kept = this.chunks.reduce((sum, chunk) => sum + chunk.text.length, 0);
    while (kept > maxKeptChars && this.chunks.length > 1) {
      kept -= this.chunks.shift()?.text.length ?? 0;
    }
  }
}

/** A page that stays open overnight must not grow with the log. */
export const maxKeptChars = 1 << 20;

const newline = 10;

// A piece from the middle of a file begins inside a line, and perhaps inside a character.
function firstLineEnd(bytes: Uint8Array): number {
  const at = bytes.indexOf(newline);
  return at < 0 ? 0 : at + 1;
}

// Terminal colours and cursor movements mean nothing here.
const escapes = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*\u0007/g;

// A progress bar rewrites its line with carriage returns: only the last writing counts.
function clean(text: string): string {
  return text
    .replace(escapes, '')
    .replace(/\r\n/g, '\n')
    .replace(/^[^\n]*\r(?=[^\n])/gm, '');
}
