import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { smallReplay } from '../mock/replays';
import { frontWorld, largeWorld, pauseAt, promotingWorld, smallWorld } from '../mock/scenarios';
import { Harness, pointsOf, rowNumbers, settledBox, waitForPoints } from './harness';

const harness = new Harness();

const row = (page: Page, trial: number) => page.locator(`tr[data-trial="${trial}"]`);

describe('the importance of parameters', () => {
  it('has bars, the longest first, or says why there are none', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const card = page.getByTestId('importance');
    await card.getByText('Importance needs 20 trials.').waitFor();

    world.importances.set('accuracy', {
      metric: 'accuracy',
      trials: 40,
      best: 5,
      reason: '',
      parameters: [
        { name: 'lr', importance: 0.75 },
        { name: 'width', importance: 0.25 },
      ],
    });
    await page.reload();
    await card.getByText('best 5 of 40 trials').waitFor();
    expect(await card.locator('tr').allTextContents()).toEqual(['lr75%', 'width25%']);
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
      ...{ metric, trials: 40, best: 5, reason: '' },
      parameters: [{ name, importance: 1 }],
    });
    world.importances.set('accuracy', importance('accuracy', 'lr'));
    world.importances.set('latency_ms', importance('latency_ms', 'width'));
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const card = page.getByTestId('importance');
    await card.getByText('lr', { exact: true }).waitFor();
    await card.getByLabel('for').selectOption('latency_ms');
    await card.getByText('width', { exact: true }).waitFor();
    expect(await card.locator('tr').allTextContents()).toEqual(['width100%']);
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
      'step 3no trial yet0',
      'step 9no trial yet0',
    ]);
    expect(await note(page, 0).textContent()).toBe('running past rung 1');
    expect(await note(page, 1).textContent()).toBe('paused at rung 1');
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
    expect(await note(page, 0).textContent()).toBe('pending past rung 3');
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

describe('the trials', () => {
  it('begin with the best', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await row(page, 3).waitFor();
    const best = world.trialsOf('s1').map((trial) => trial.best as number);
    const shown = (await rowNumbers(page)).map((number) => best[number] as number);
    const finite = shown.filter(Number.isFinite);
    expect(finite).toEqual([...finite].sort((a, b) => b - a));
    expect(shown.at(-1)).toBe('nan');
  });

  it('are sorted by a click on a header, and reversed by another click', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const header = page.getByRole('columnheader', { name: 'lr' });
    await header.getByRole('button').click();
    await page.locator('th[aria-sort=ascending]').getByText('lr').waitFor();
    const rates = world.trialsOf('s1').map((trial) => trial.config.lr as number);
    const shown = async (): Promise<number[]> =>
      (await rowNumbers(page)).map((number) => rates[number] as number);
    expect(await shown()).toEqual([...rates].sort((a, b) => a - b));
    await header.getByRole('button').click();
    await page.locator('th[aria-sort=descending]').getByText('lr').waitFor();
    expect(await shown()).toEqual([...rates].sort((a, b) => b - a));
    expect(new URL(page.url()).searchParams.get('sort')).toBe('-config.lr');
  });

  it('are sorted from the keyboard', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByRole('columnheader', { name: 'trial' }).getByRole('button').focus();
    await page.keyboard.press('Enter');
    await page.locator('th[aria-sort=ascending]').getByText('trial').waitFor();
    expect(await rowNumbers(page)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('show why a trial was stopped', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const stopped = world.trialsOf('s1').find((trial) => trial.state === 'stopped');
    const reason = row(page, stopped?.number ?? -1).locator('.reason');
    expect(await reason.textContent()).toMatch(
      /^Stopped at step 1: accuracy 0\.\d+ is rank \d of \d at rung 1; the best \d go on \(cutoff 0\.\d+\)\.$/,
    );
  });

  it('show that a trial is stopped while the page is open', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await row(page, 10).getByText('running').waitFor();
    world.change(
      world.trial('s1', 10),
      'stopped',
      'stopped at step 1: accuracy 0.5 is rank 10 of 11',
    );
    await row(page, 10).getByText('Stopped at step 1: accuracy 0.5 is rank 10 of 11.').waitFor();
    await page.getByRole('button', { name: 'stopped 3' }).waitFor();
  });

  it('are selected by j and k, which highlights the line, and opened by Enter', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1?sort=number');
    await row(page, 0).waitFor();
    for (const key of ['j', 'j', 'j', 'k']) await page.keyboard.press(key);
    await page.locator('tr[aria-current=true][data-trial="1"]').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Trial 1' }).waitFor();
    await page.goBack();
    await page.locator('tr[aria-current=true][data-trial="1"]').waitFor();
  });

  it('are filtered by words and by states, in the table and in the chart', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await row(page, 3).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('optimizer=sgd');
    const sgd = world.trialsOf('s1').filter((trial) => trial.config.optimizer === 'sgd').length;
    await page.locator(`[data-testid=curves][data-lines="${sgd}"]`).waitFor();
    expect((await rowNumbers(page)).length).toBe(sgd);
    await page.getByLabel('Filter trials').fill('');
    await page.getByRole('button', { name: 'running 2' }).click();
    await page.locator('[data-testid=curves][data-lines="2"]').waitFor();
    expect((await rowNumbers(page)).sort()).toEqual([10, 9]);
  });
});

describe('the rest of the page', () => {
  it('says what a sweep waits for, until it does not', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s3');
    await page
      .getByText('Trial 0 needs 8 GPUs; executor box has none and node-7 is lost.')
      .waitFor();
    world.sweep('s3').waiting_reason = '';
    world.start(world.trial('s3', 0));
    await page.getByText('Trial 0 needs 8 GPUs').waitFor({ state: 'detached' });
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

  it('loads when the server is available again', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.stranger();
    await page.goto(`${server.url}/login?token=test-token`);
    await page.route('**/curves', (route) => route.abort('connectionrefused'));
    await page.goto(`${server.url}/sweeps/s1`);
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    await page.unroute('**/curves');
    await page.getByRole('heading', { name: 'fashion-mnist' }).waitFor();
  });

  it('says when there is no such sweep', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/nope');
    await page.getByRole('alert').getByText('No such sweep').waitFor();
  });
});

describe('a sweep of two thousand trials', () => {
  it('has few rows in the document, and one key shows the last', async () => {
    const world = largeWorld(2000);
    const page = await harness.open(await harness.serve(world), '/sweeps/big?sort=number');
    await row(page, 0).waitFor();
    expect(await page.locator('tr[data-trial]').count()).toBeLessThan(80);
    await page.keyboard.press('End');
    await row(page, 2000).waitFor();
    expect(await page.locator('tr[data-trial]').count()).toBeLessThan(80);
    await page.keyboard.press('Home');
    await row(page, 0).waitFor();
  });

  it('handles a thousand reports', async () => {
    const world = largeWorld(2000);
    const page = await harness.open(await harness.serve(world), '/sweeps/big');
    await waitForPoints(page, pointsOf(world, 'big'));
    const trial = world.trial('big', 2000);
    for (let step = 1; step <= 1000; step += 1)
      world.report(trial, step, { accuracy: 0.5 + step / 10_000 });
    await waitForPoints(page, pointsOf(world, 'big'));
  });
});
