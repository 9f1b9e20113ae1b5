import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';

const budgetBytes = 120_000;
const dist =
  process.env.ATTUNE_WEB_DIST ?? fileURLToPath(new URL('../../../web/dist', import.meta.url));
const index = join(dist, 'index.html');

describe.skipIf(!existsSync(index))('the built page', () => {
  const html = existsSync(index) ? readFileSync(index, 'utf8') : '';

  it('loads at most 120 kB of gzipped JavaScript', () => {
    const scripts = [...html.matchAll(/(?:src|href)="([^"]+\.js)"/g)].map(
      (match) => match[1] as string,
    );
    expect(scripts.length).toBeGreaterThan(0);
    const size = scripts.reduce(
      (sum, path) => sum + gzipSync(readFileSync(join(dist, path)), { level: 9 }).length,
      0,
    );
    expect(size).toBeLessThanOrEqual(budgetBytes);
  });

  it('sends requests only to its own server', () => {
    for (const [, address] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      expect(address).toMatch(/^\/(?!\/)/);
    }
  });

  it('has nothing inline that its Content-Security-Policy would forbid', () => {
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)/);
    expect(html).not.toMatch(/\son\w+=/);
  });
});
