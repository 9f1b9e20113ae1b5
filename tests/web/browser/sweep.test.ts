import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { smallReplay } from '../mock/replays';
import { frontWorld, pauseAt, promotingWorld, smallWorld } from '../mock/scenarios';
import { World } from '../mock/world';
import { Harness, pointsOf, row, rowNumbers, settledBox, waitForPoints } from './harness';

const harness = new Harness();

describe('the importance of parameters', () => {
  it('has bars, the longest first, or says why there are none', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const card = page.getByTestId('importance');
    await card.getByText('Importance needs 20 trials.').waitFor();

    world.importances.set('accuracy', {
      metric: 'accuracy',
      mode: 'max',
      step: 9,
      trials: 40,
      best: 5,
      reason: '',
      parameters: [
        { name: 'lr', importance: 0.75, low: 0.6, high: 0.9 },
        { name: 'width', importance: 0.25, low: 0.1, high: 0.4 },
      ],
    });
    await page.reload();
    await card.getByText('best 5 of 40 trials up to step 9').waitFor();
    expect(await card.locator('tbody tr').allTextContents()).toEqual([
      'lr75%60–90',
      'width25%10–40',
    ]);
  });

  it('is available for a metric that is not an objective, with low or high values as the best', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1');
    const card = page.getByTestId('importance');
    await card.getByLabel('for').selectOption('loss');
    await card.getByLabel('best is').selectOption('high');
    await expect
      .poll(() => server.requests, { timeout: 20_000 })
      .toContain('GET /sweeps/s1/importance?metric=loss&mode=max');
    expect(server.requests).toContain('GET /sweeps/s1/importance?metric=loss&mode=min');
  });

  it('is read again when a trial has ended', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByTestId('importance').getByText('Importance needs').waitFor();
    await page.getByTestId('stream').getByText('live').waitFor();
    const again = page.waitForRequest(/importance/);
    world.change(world.trial('s1', 9), 'completed', 'reached step 9');
    await again;
  });
});

describe('several metrics', () => {
  it('have a front, with the best in the first metric first, which grows as trials report', async () => {
    const world = frontWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const card = page.getByTestId('front');
    await card.getByText('2 reports that no other beats in all metrics.').waitFor();
    expect(await card.locator('thead th').allTextContents()).toEqual([
      ...['trial', 'step', 'accuracy ↑', 'latency_ms ↓'],
    ]);
    const rows = card.locator('tbody tr');
    expect(await rows.allTextContents()).toEqual(['210.900030', '010.800012']);
    expect(await page.getByTestId('best').count()).toBe(0);

    await page.getByTestId('stream').getByText('live').waitFor();
    world.report(world.trial('s1', 1), 2, { accuracy: 0.85, latency_ms: 11 });
    await card.getByRole('link', { name: '1', exact: true }).waitFor();
    expect(await rows.allTextContents()).toEqual(['210.900030', '120.850011']);
    await card.getByRole('link', { name: '1', exact: true }).click();
    await page.getByRole('heading', { name: 'Trial 1' }).waitFor();
  });

  it('have no front before a report counts', async () => {
    const world = frontWorld();
    world.sweep('s1').pareto_front = [];
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByTestId('front').getByText('No report counts yet.').waitFor();
    await page.getByText('maximise accuracy, minimise latency_ms').waitFor();
  });

  it('each have the importance of parameters', async () => {
    const world = frontWorld();
    const importance = (metric: string, name: string) => ({
      ...{ metric, mode: 'max' as const, step: 9, trials: 40, best: 5, reason: '' },
      parameters: [{ name, importance: 1, low: 1, high: 1 }],
    });
    world.importances.set('accuracy', importance('accuracy', 'lr'));
    world.importances.set('latency_ms', importance('latency_ms', 'width'));
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const card = page.getByTestId('importance');
    await card.getByText('lr', { exact: true }).waitFor();
    await card.getByLabel('for').selectOption('latency_ms');
    await card.getByText('width', { exact: true }).waitFor();
    expect(await card.locator('tbody tr').allTextContents()).toEqual(['width100%100–100']);
    expect(server.requests).toContain('GET /sweeps/s1/importance?metric=latency_ms');
  });
});

describe('rungs that trials are paused at', () => {
  const note = (page: Page, trial: number) => row(page, trial).locator('td').first();

  it('show how many trials continued and how many wait, and rows show the rung of each trial', async () => {
    const world = promotingWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const rungs = page.getByTestId('rungs').locator('tbody tr');
    await rungs.first().waitFor();
    expect(await rungs.allTextContents()).toEqual([
      'step 11 continued, 2 paused3',
      expect.stringMatching(/^step 3\D+0$/),
      expect.stringMatching(/^step 9\D+0$/),
    ]);
    expect(await note(page, 0).textContent()).toMatch(/^running past\b.* 1$/);
    expect(await note(page, 1).textContent()).toMatch(/^paused at\b.* 1$/);
    await row(page, 1).getByText('Paused at step 1: accuracy 0.5 is rank 2 of 2').waitFor();
  });

  it('follow a trial that is paused and promoted while the page is open', async () => {
    const world = promotingWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByTestId('stream').getByText('live').waitFor();
    const trial = world.trial('s1', 0);
    world.report(trial, 3, { accuracy: 0.8 });
    pauseAt(world, trial, 3, 0.8);
    await note(page, 0).getByText('at rung 3').waitFor();
    const rung = page.getByTestId('rungs').locator('tbody tr').nth(1);
    expect(await rung.textContent()).toBe('step 31 paused1');

    world.change(trial, 'pending', 'promoted at rung 3: accuracy 0.8 is rank 1 of 3 at rung 3');
    await row(page, 0).getByText('Promoted at rung 3: accuracy 0.8 is rank 1 of 3').waitFor();
    expect(await note(page, 0).textContent()).toMatch(/^pending past\b.* 3$/);
    expect(await rung.textContent()).toBe('step 31 continued1');
    world.start(trial);
    await note(page, 0).getByText('running').waitFor();
  });

  it('keep the trials that were not promoted when the sweep has ended', async () => {
    const world = promotingWorld();
    for (const number of [1, 2])
      world.change(world.trial('s1', number), 'stopped', 'paused at step 1, and not promoted');
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const rung = page.getByTestId('rungs').locator('tbody tr').first();
    await rung.waitFor();
    expect(await rung.textContent()).toBe('step 11 continued, 2 stopped3');
    await row(page, 2).getByText('Paused at step 1, and not promoted.').waitFor();
  });
});

describe('a clone', () => {
  it('is named next to its state, and its line starts at the line of its donor', async () => {
    const world = promotingWorld();
    world.sweep('s1').rungs = [];
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByTestId('stream').getByText('live').waitFor();
    expect(await page.getByTestId('rungs').count()).toBe(0);
    const trial = world.trial('s1', 0);
    world.clone(trial, 2, 1);
    world.report(trial, 2, { accuracy: 0.75 });
    await row(page, 0).getByText('clone of 2').waitFor();
    const ring = page.getByText(
      'A ring: a trial continues from there with the checkpoint of another trial.',
    );
    await ring.waitFor();
    await page.reload();
    await row(page, 0).getByText('clone of 2').waitFor();
    await ring.waitFor();
    // The line of its donor is not drawn.
    await page.getByLabel('Filter trials').fill('#0');
    await ring.waitFor({ state: 'detached' });
  });
});

describe('what if', () => {
  it('asks for another scheduler, and shows its result for the sweep', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const card = page.getByTestId('what-if');
    await card.getByRole('button', { name: 'Replay' }).click();
    await card.getByText('no trial has reported a result that counts').waitFor();

    world.replays.set('s1', smallReplay());
    await card.getByLabel('under').selectOption('hyperband');
    await card.getByLabel('factor').fill('4');
    await card.getByRole('button', { name: 'Replay' }).click();
    await card.getByText('The replay loses the winner, trial 1, at step 1').waitFor();
    expect(server.bodies.at(-1)).toEqual({ scheduler: { name: 'hyperband', reduction_factor: 4 } });
    await card.getByText('2 of 3 trials end differently').click();
    await card.getByText('stopped 3 … completed 9 ?').waitFor();
    await card.getByRole('link', { name: 'trial 2' }).click();
    await page.getByRole('heading', { name: 'Trial 2' }).waitFor();
  });
});

describe('the learning curves', () => {
  it('grow with the events, without a reload', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await waitForPoints(page, pointsOf(world, 's1'));
    const curveReads = (): number =>
      server.requests.filter((each) => each.includes('/curves')).length;
    const before = curveReads();

    const trial = world.trial('s1', 9);
    world.report(trial, 4, { accuracy: 0.93, loss: 0.2 });
    world.report(trial, 5, { accuracy: 0.9432, loss: 0.2 });
    await waitForPoints(page, pointsOf(world, 's1'));
    await page.getByTestId('best').getByText('0.9432').waitFor();
    expect(await row(page, 9).textContent()).toContain('best');
    expect(curveReads()).toBe(before);
  });

  it('get another line when a trial starts', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.locator('[data-testid=curves][data-lines="11"]').waitFor();
    const trial = world.addTrial('s1', {
      lr: 0.3,
      momentum: 0,
      width: 8,
      optimizer: 'sgd',
      batch: 128,
    });
    world.start(trial);
    world.report(trial, 1, { accuracy: 0.5 });
    await page.locator('[data-testid=curves][data-lines="12"]').waitFor();
    await row(page, 11).waitFor();
  });

  it('miss no event when the connection breaks', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByTestId('stream').getByText('live').waitFor();
    server.dropStreams();
    world.report(world.trial('s1', 9), 4, { accuracy: 0.93 });
    world.report(world.trial('s1', 9), 5, { accuracy: 0.94 });
    await waitForPoints(page, pointsOf(world, 's1'));
  });

  it('use one stream for each page', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByTestId('stream').getByText('live').waitFor();
    await page.getByRole('link', { name: 'trial 3', exact: true }).click();
    await page.getByRole('heading', { name: 'Trial 3' }).waitFor();
    await page.getByTestId('stream').getByText('live').waitFor();
    await expect.poll(() => server.openStreams).toBe(1);
  });

  it('are available as a table and in words', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page
      .getByText(/accuracy of 11 trials up to step 9\. Best: 0\.\d+, trial 3 at step 9\./)
      .waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.getByRole('region', { name: 'Curves as a table' });
    expect(await table.locator('thead th').count()).toBe(10);
    expect(await table.locator('tbody tr').count()).toBe(11);
    expect(await table.textContent()).toContain('NaN');
  });

  it('follow the mouse: the nearest curve shows its name, and its row is marked; a click selects it', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1?state=running');
    await page.locator('[data-testid=curves][data-lines="2"]').waitFor();
    const over = await settledBox(page.locator('.u-over'));
    // Only trial 9 has a second step: its line passes somewhere through this column.
    const column = over.x + over.width * 0.15;
    for (let y = over.y; y < over.y + over.height; y += 12) {
      await page.mouse.move(column, y);
      if ((await page.locator('tr.hovered').count()) > 0) break;
    }
    await page.locator('tr.hovered[data-trial="9"]').waitFor();
    expect(await page.locator('.plot-tip').textContent()).toMatch(
      /^trial 9 accuracy 0\.\d+ at step 3$/,
    );
    await page.mouse.down();
    await page.mouse.up();
    await page.locator('tr[aria-current=true][data-trial="9"]').waitFor();
  });

  it('say when a curve that diverges leaves the frame', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await waitForPoints(page, pointsOf(world, 's1'));
    world.report(world.trial('s1', 10), 2, { accuracy: -1e6 });
    await page.getByText('1 curve leaves the frame').waitFor();
  });

  it('can show another metric, on a logarithmic scale', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByLabel('metric').selectOption('loss');
    await page.getByRole('heading', { name: 'loss by step' }).waitFor();
    await page.getByLabel('log scale').check();
    expect(new URL(page.url()).search).toBe('?metric=loss&y=log');
    await page.reload();
    await page.getByRole('heading', { name: 'loss by step' }).waitFor();
    expect(await page.getByLabel('log scale').isChecked()).toBe(true);
  });
});

describe('a chart without anything to draw', () => {
  it('says that the filter hides the trials, and clears it', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1?q=lr%3E900');
    const chart = page.locator('.plot');
    await chart.getByText('The filter hides all of the 11 trials.').waitFor();
    await page.getByText('No trial matches the filter.').waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    await page.locator('.plot-table').getByText('The filter hides').waitFor();
    await page.getByRole('button', { name: 'Clear the filter' }).first().click();
    await row(page, 9).waitFor();
    expect(new URL(page.url()).search).toBe('');
  });

  it('says why a sweep has failed, and where to look', async () => {
    const world = new World();
    world.addSweep({ id: 's1', name: 'broken' });
    for (let i = 0; i < 3; i += 1) {
      const trial = world.addTrial('s1', { lr: 0.1 });
      world.start(trial);
      world.change(trial, 'failed', 'rank 0 exited with code 1');
    }
    world.changeSweep('s1', 'failed', 'the first 3 trials failed before any report');
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const chart = page.locator('.plot');
    await chart
      .getByText(/None of the 3 trials has reported accuracy. The sweep has failed./)
      .waitFor();
    await chart.getByText('its attempts have the last lines of the log').waitFor();
    await page.getByText('No trial has reported accuracy.', { exact: true }).waitFor();
  });
});

describe('the rest of the page', () => {
  it('says what a sweep waits for, until it does not', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s3');
    const notice = page.locator('.notice');
    await notice
      .getByText('Trial 0 needs 8 GPUs; executor box has none and node-7 is lost.')
      .waitFor();
    await page.locator('.plot').getByText('Trial 0 needs 8 GPUs').waitFor();
    world.sweep('s3').waiting_reason = '';
    world.start(world.trial('s3', 0));
    await notice.waitFor({ state: 'detached' });
  });

  it('has the best configuration with its checkpoint to copy', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const card = page.getByTestId('best');
    await card.getByRole('link', { name: 'trial 3' }).waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await card.getByRole('button', { name: 'Copy checkpoint path' }).click();
    await card.getByText('Copied').waitFor({ state: 'attached' });
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
      world.sweep('s1').best?.checkpoint,
    );
  });

  it('shows the sweep file as it was sent', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByRole('link', { name: 'Sweep file' }).click();
    const shown = page.locator('pre.code');
    await shown.waitFor();
    expect(await shown.textContent()).toBe(world.sweep('s1').file);
    expect(await page.getByRole('row', { name: /lr/ }).textContent()).toContain('0.001 … 0.5, log');
  });

  it('shows the edited file, and what differs from the file as sent', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1?tab=file');
    const shown = page.getByTestId('file');
    await shown.getByText('max_trials: 12').waitFor();
    await page.getByTestId('stream').getByText('live').waitFor();
    world.edit('s1', { max_trials: 40 }, ['stop.max_trials 40']);
    await page.locator('.diff-added').getByText('max_trials: 40').waitFor();
    await page.locator('.diff-removed').getByText('max_trials: 12').waitFor();
    await page.getByText(/Last edit by admin, .*stop\.max_trials 40/).waitFor();
    await page.getByLabel('show').selectOption('as sent');
    await expect.poll(() => shown.textContent(), { timeout: 20_000 }).toBe(world.sweep('s1').file);
    await page.getByLabel('show').selectOption('now');
    await expect
      .poll(() => shown.textContent(), { timeout: 20_000 })
      .toBe(world.sweep('s1').resolved_file);
  });

  it('shows an edit until it is dismissed, and keeps it in the facts', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByTestId('stream').getByText('live').waitFor();
    world.edit('s1', { max_trials: 40 }, ['stop.max_trials 40']);
    const notice = page.locator('.notice', { hasText: 'stop.max_trials 40' });
    await notice.getByRole('button', { name: 'Dismiss' }).click();
    await notice.waitFor({ state: 'detached' });
    await page.reload();
    await page.locator('.fact', { hasText: 'Last edit' }).getByText('by admin').waitFor();
    expect(await notice.count()).toBe(0);
  });

  it('says how many trials failed, also after the sweep has completed', async () => {
    const world = smallWorld();
    world.changeSweep('s1', 'completed', 'all trials have ended');
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByRole('link', { name: '1 trial failed' }).click();
    await row(page, 8).waitFor();
    expect(await rowNumbers(page)).toEqual([8]);
  });

  it('has the state and the name of the sweep in the title of the tab', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await expect
      .poll(() => page.title(), { timeout: 20_000 })
      .toBe('running · fashion-mnist · Attune');
    await page.getByTestId('stream').getByText('live').waitFor();
    world.changeSweep('s1', 'completed', 'all trials have ended');
    await expect
      .poll(() => page.title(), { timeout: 20_000 })
      .toBe('completed · fashion-mnist · Attune');
  });

  it('says since when the server is gone, and what runs without it', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByTestId('stream').getByText('live').waitFor();
    await page.route('**/api/v1/**', (route) => route.abort());
    server.dropStreams();
    const banner = page.getByTestId('server-banner');
    await banner.getByText('1 trial ran then: its gang trains on without it').waitFor();
    await page.unroute('**/api/v1/**');
    await banner.waitFor({ state: 'detached' });
  });

  it('remembers that notifications are on', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1', { permissions: ['notifications'] });
    await page.getByRole('button', { name: 'Notifications: off' }).click();
    const on = page.getByRole('button', { name: 'Notifications: on' });
    await on.waitFor();
    await page.reload();
    await on.waitFor();
    await on.click();
    await page.getByRole('button', { name: 'Notifications: off' }).waitFor();
  });

  it('loads when the server is available again', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.stranger();
    await page.goto(`${server.url}/login?token=test-token`);
    await page.route('**/trials*', (route) => route.abort('connectionrefused'));
    await page.goto(`${server.url}/sweeps/s1`);
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    await page.unroute('**/trials*');
    await page.getByRole('heading', { name: 'fashion-mnist' }).waitFor();
  });

  it('says when there is no such sweep', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/nope');
    await page.getByRole('alert').getByText('No such sweep').waitFor();
  });
});
