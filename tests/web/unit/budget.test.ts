import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';

const budgetBytes = 170_000;
const reportBudgetBytes = 500_000;
const dist =
  process.env.ATTUNE_WEB_DIST ?? fileURLToPath(new URL('../../../web/dist', import.meta.url));
const index = join(dist, 'index.html');

describe.skipIf(!existsSync(index))('the built page', () => {
  const html = existsSync(index) ? readFileSync(index, 'utf8') : '';

  it('loads at most 170 kB of gzipped JavaScript and CSS for its first view', () => {
    // Other views are files that no tag of the page names.
    const files = [...html.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)].map(
      (match) => match[1] as string,
    );
    expect(files.length).toBeGreaterThan(1);
    const size = files.reduce(
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

const report = join(dist, 'report.html');

describe.skipIf(!existsSync(report))('the template of reports', () => {
  const html = existsSync(report) ? readFileSync(report, 'utf8') : '';

  it('is one file, which leaves most of 5 MB to the answers', () => {
    expect(html.length).toBeLessThanOrEqual(reportBudgetBytes);
    expect(html).not.toMatch(/<(script|link|img)[^>]*\s(src|href)=/);
    expect(html).not.toMatch(/url\((?!"?data:|['"]?#)/);
  });

  it('has one place for the answers, and a policy that allows no request', () => {
    expect(html.split('<!-- The server puts the title and the answers here. -->')).toHaveLength(2);
    expect(html).toContain(`content="default-src 'none'; script-src 'sha256-`);
  });
});
