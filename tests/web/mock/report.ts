import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

import { curvesType } from '../../../web/src/api/curves';
import { token, type MockServer } from './server';

const mark = '<!-- The server puts the title and the answers here. -->';

/** Writes a report of a sweep in the form of the server, from the answers of the mock. Returns its URL. */
export async function writeReport(
  server: MockServer,
  sweep: string,
  metrics: readonly string[] = [],
): Promise<string> {
  const parts: string[] = [];
  const add = (name: string, bytes: Uint8Array): void => {
    const packed = gzipSync(bytes).toString('base64');
    parts.push(
      `<script type="application/octet-stream" data-answer="${name.replaceAll('&', '&amp;')}">${packed}</script>`,
    );
  };
  const read = async (path: string): Promise<Uint8Array> => {
    const accept = path.includes('/curves') ? curvesType : 'application/json';
    const headers = { Cookie: `${server.cookie}=${token}`, Accept: accept };
    const response = await fetch(`${server.url}/api/v1${path}`, { headers });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return new Uint8Array(await response.arrayBuffer());
  };
  const of = `/sweeps/${sweep}`;
  const about = { sweep, time: '2026-03-01T10:00:00Z', version: '0.1.0' };
  add('/report', Buffer.from(JSON.stringify(about)));
  for (const part of ['', '/cost', '/failures', '/lineage', '/activity'])
    add(of + part, await read(of + part));
  for (let next = ''; ; ) {
    const query = next && `?page_token=${next}`;
    const page = await read(`${of}/trials${query}`);
    add(`${of}/trials${query}`, page);
    next = (JSON.parse(Buffer.from(page).toString()) as { next_page_token: string })
      .next_page_token;
    if (!next) break;
  }
  for (const metric of ['', ...metrics]) {
    const and = metric && `metric=${metric}`;
    add(
      `${of}/curves?best=${and && `&${and}`}`,
      await read(`${of}/curves?best=100&points=256&${and}`),
    );
    for (let next = 0; ; ) {
      const query = [and, next > 0 ? `page_token=${next}` : ''].filter(Boolean).join('&');
      const page = await read(`${of}/curves?points=16&${query}`);
      add(`${of}/curves${query && `?${query}`}`, page);
      next = Buffer.from(page).readUInt32LE(16 + 4 * 6) - 1;
      if (next < 0) break;
    }
  }
  const best = JSON.parse(
    Buffer.from(await read(`${of}/trials?order_by=best&page_size=20`)).toString(),
  ) as {
    trials: { number: number }[];
  };
  for (const { number } of best.trials)
    for (const part of ['', '/logged?after=0', '/schedule'])
      add(`${of}/trials/${number}${part}`, await read(`${of}/trials/${number}${part}`));
  const { metric } = JSON.parse(Buffer.from(await read(of)).toString()) as {
    metric: { name: string };
  };
  add(
    `${of}/importance?metric=${metric.name}`,
    await read(`${of}/importance?metric=${metric.name}`),
  );

  const template = readFileSync(join(server.pages, 'report.html'), 'utf8');
  const file = join(mkdtempSync(join(tmpdir(), 'attune-report-')), `${sweep}.html`);
  const head = `<title>${sweep} · Attune 0.1.0</title>\n${parts.join('\n')}`;
  writeFileSync(
    file,
    template.replace(mark, () => head),
  );
  return pathToFileURL(file).href;
}
