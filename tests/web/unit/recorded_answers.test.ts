import { gzipSync } from 'node:zlib';

import { afterEach, describe, expect, it } from 'vitest';

import { ApiError, answerFrom, api, hasServer, type Source } from '../../../web/src/api/client';
import type { Sweep } from '../../../web/src/api/contract';
import { RecordedAnswers } from '../../../web/src/report/recorded_answers';
import { encodeCurves } from '../mock/curve_pages';

const pack = (bytes: string | Uint8Array): string => gzipSync(bytes).toString('base64');
const json = (body: object): string => pack(JSON.stringify(body));
const curve = (number: number): string =>
  pack(
    new Uint8Array(
      encodeCurves([{ number, steps: [1, 2], values: [0.5, 0.25], segments: [], clones: [] }], 7),
    ),
  );

const server: Source = {
  isServer: true,
  has: () => true,
  fetch: () => Promise.reject(new Error('a test sends no request')),
};

afterEach(() => answerFrom(server));

describe('the recorded answers of a report', () => {
  it('are read by the client in place of a server', async () => {
    answerFrom(new RecordedAnswers([['/sweeps/s1', json({ id: 's1', name: 'größer </script>' })]]));
    expect(hasServer()).toBe(false);
    expect((await api.sweep('s1')).name).toBe('größer </script>');
  });

  it('have all pages of trials, whatever their order, filter and size', async () => {
    const page = (number: number, next_page_token: string): string =>
      json({ trials: [{ number }], next_page_token, seq: 1, total_size: 2 });
    answerFrom(
      new RecordedAnswers([
        ['/sweeps/s1/trials', page(0, 'a/b+c')],
        ['/sweeps/s1/trials?page_token=a%2Fb%2Bc', page(1, '')],
      ]),
    );
    const first = await api.trials('s1', { page_size: 200, order_by: 'best', filter: 'lr<1' });
    expect(first.trials[0]?.number).toBe(0);
    const query = { page_size: 1000, page_token: first.next_page_token };
    expect((await api.trials('s1', query)).trials[0]?.number).toBe(1);
  });

  it('have the curves of the best trials for chosen trials, and those of all for others', async () => {
    answerFrom(
      new RecordedAnswers([
        ['/sweeps/s1/curves?best=100&points=256', curve(1)],
        ['/sweeps/s1/curves?points=16', curve(2)],
      ]),
    );
    const first = async (query: object): Promise<number | undefined> =>
      (await api.curvePage('s1', { points: 64, ...query })).trials[0];
    expect(await first({ best: 50 })).toBe(1);
    expect(await first({ trials: [5], first_step: 2, last_step: 3 })).toBe(1);
    expect(await first({})).toBe(2);
  });

  it('use the other curves if a report has only one kind of a metric', async () => {
    answerFrom(
      new RecordedAnswers([
        ['/sweeps/s1/curves?points=256', curve(1)],
        ['/sweeps/s1/curves?best=100&metric=val%2Floss&points=256', curve(2)],
      ]),
    );
    expect((await api.curvePage('s1', { points: 256, best: 100 })).trials[0]).toBe(1);
    expect((await api.curvePage('s1', { points: 64, metric: 'val/loss' })).trials[0]).toBe(2);
    expect(api.hasCurves('s1', 'val/loss')).toBe(true);
    expect(api.hasCurves('s1', 'other')).toBe(false);
  });

  it('lack what the report does not contain', async () => {
    answerFrom(new RecordedAnswers([['/sweeps/s1/trials/3', json({ number: 3 })]]));
    expect(api.hasTrial('s1', 3)).toBe(true);
    expect(api.hasTrial('s1', 4)).toBe(false);
    const missing: Promise<Sweep> = api.sweep('s1');
    await expect(missing).rejects.toBeInstanceOf(ApiError);
    await expect(missing).rejects.toMatchObject({ problem: { status: 404 } });
  });
});
