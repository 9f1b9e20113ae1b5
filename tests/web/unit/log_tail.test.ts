import { describe, expect, it } from 'vitest';

import { LogTail, maxKeptChars } from '../../../web/src/model/logs/log_tail';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('the end of a log', () => {
  it('grows at its end', () => {
    const tail = new LogTail();
    tail.append(bytes('one\n'), 0);
    tail.append(bytes('two\n'), 4);
    expect([tail.text, tail.begin, tail.end]).toEqual(['one\ntwo\n', 0, 8]);
  });

  it('begins with a whole line when the file was read from its middle', () => {
    const tail = new LogTail();
    tail.append(bytes('ine\nnext\n'), 100);
    expect([tail.text, tail.begin, tail.end]).toEqual(['next\n', 104, 109]);
  });

  it('joins earlier text without a gap', () => {
    const tail = new LogTail();
    tail.append(bytes('ond\nthird\n'), 10);
    tail.prepend(bytes('rst\nsecond\n').subarray(0, 11), 3);
    expect(tail.text).toBe('second\nthird\n');
    expect(tail.begin).toBe(7);
  });

  it('puts text before a gap on separate lines', () => {
    const tail = new LogTail();
    tail.append(bytes('\n[attune: 70 bytes are missing here]\nlast\n'), 83);
    tail.prepend(bytes('first\nsec'), 0);
    expect(tail.text).toBe('first\nsec\n[attune: 70 bytes are missing here]\nlast\n');
  });

  it('joins characters that a chunk has cut', () => {
    const whole = bytes('Verlust: größer\n');
    const tail = new LogTail();
    const cut = whole.indexOf(0xc3) + 1;
    tail.append(whole.subarray(0, cut), 0);
    tail.append(whole.subarray(cut), cut);
    expect(tail.text).toBe('Verlust: größer\n');
  });

  it('starts again with another file', () => {
    const tail = new LogTail();
    tail.append(bytes('old old old\n'), 0);
    tail.append(bytes('new\n'), 0);
    expect([tail.text, tail.end]).toEqual(['new\n', 4]);
  });

  it('shows no terminal colours, and only the last state of a progress bar', () => {
    const tail = new LogTail();
    tail.append(bytes('\u001b[31mred\u001b[0m\r\n 10%\r 50%\r100%\n'), 0);
    expect(tail.text).toBe('red\n100%\n');
  });

  it('drops its beginning when it is long, and keeps its position', () => {
    const tail = new LogTail();
    const line = `${'x'.repeat(1023)}\n`;
    const chunk = bytes(line.repeat(256));
    for (let i = 0; i < 8; i += 1) tail.append(chunk, i * chunk.length);
    expect(tail.text.length).toBeLessThanOrEqual(maxKeptChars);
    expect(tail.begin).toBe(tail.end - tail.text.length);
  });
});
