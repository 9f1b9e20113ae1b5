import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect } from 'vitest';

/**
 * Expects that the file tests/golden/`name`.txt contains the lines. If ATTUNE_WRITE_GOLDEN is set,
 * writes the file first.
 */
export function expectGolden(name: string, ...lines: string[]): void {
  const text = lines.map((line) => `${line}\n`).join('');
  const path = join(import.meta.dirname, '../../../golden', `${name}.txt`);
  if (process.env.ATTUNE_WRITE_GOLDEN) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  expect(text, `set ATTUNE_WRITE_GOLDEN=1 to write ${path}`).toBe(readFileSync(path, 'utf8'));
}
