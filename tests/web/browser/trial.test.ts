import { describe, expect, it } from 'vitest';

import { pauseAt, promotingWorld, smallWorld } from '../mock/scenarios';
import { Harness, waitForPoints } from './harness';

const harness = new Harness();

describe('a trial', () => {
  it('says why it was stopped, in a sentence, and by which decision', async () => {
    const world = smallWorld();
    const stopped = world.trialsOf('s1').find((trial) => trial.state === 'stopped');
    const page = await harness.open(
      await harness.serve(world),
      `/sweeps/s1/trials/${stopped?.number}`,
    );
    await page.getByTestId('why').waitFor();
    expect(await page.getByTestId('why').textContent()).toMatch(
      /^Stopped at step 1: accuracy .* go on \(cutoff .*\)\.$/,
    );
    const decision = page.getByTestId('decisions').locator('tbody tr').last();
    expect(await decision.textContent()).toContain('stop');
    expect(await decision.textContent()).toContain('asha');
  });

  it('says why it has its configuration, and links to the trial near it', async () => {
    const world = smallWorld();
    const text = 'model of 8 results: near trial 3, lr from 0.03 to 0.021; log density ratio 1.83';
    Object.assign(world.trial('s1', 9), {
      origin: 'tpe',
      rationale: { rule: 'density_ratio', from: [3], results: 8, score: 1.83, text },
    });
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    await page.getByTestId('origin').getByText(`Proposed by tpe: ${text}.`).waitFor();
    await page.getByTestId('origin').getByRole('link', { name: 'trial 3' }).click();
    await page.getByRole('heading', { name: 'Trial 3' }).waitFor();
    await page.getByTestId('origin').getByText('Proposed by random: drawn at random.').waitFor();
  });

  it('shows and links the donor of a clone', async () => {
    const world = smallWorld();
    world.clone(world.trial('s1', 9), 3, 3);
    world.schedules.set('s1/9', {
      ...{ sweep: 's1', trial: 9, step: 3, best: null, file: '' },
      schedule: [
        { step: 0, trial: 3, attempt: 1, workers: 1, config: { lr: 0.1 }, checkpoint: null },
        { step: 3, trial: 9, attempt: 2, workers: 1, config: { lr: 0.12 }, checkpoint: 's1/3/1-3' },
      ],
    });
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    const decision = page.getByTestId('decisions').locator('tbody tr').last();
    await decision.getByText('Clones trial 3 of step 3 at step 3.').waitFor();
    expect(await decision.locator('.state').textContent()).toContain('clone');
    await page.getByTestId('attempts').locator('.tag', { hasText: 'clone' }).waitFor();
    await page.getByText('2 · cloned another once').waitFor();
    await page.getByText('Gaps: it continued from trial 3 at step 3.').waitFor();
    const rows = page.getByTestId('lineage').locator('tbody tr');
    await rows.first().waitFor();
    expect(await rows.allTextContents()).toEqual(['0trial 3lr 0.1', '3itselflr 0.12']);
    await rows.getByRole('link', { name: 'trial 3' }).click();
    await page.getByRole('heading', { name: 'Trial 3' }).waitFor();
  });

  it('shows with which versions its attempts ran', async () => {
    const world = smallWorld();
    world.clone(world.trial('s1', 9), 3, 3);
    const recorded = '2026-11-21T10:00:00.000000Z';
    for (const [attempt, torch] of ['2.2.0', '2.3.0'].entries()) {
      const python = { executable: '/usr/bin/python3', version: '3.11.7', packages: { torch } };
      world.environments.set(`s1/9/${attempt + 1}`, [
        { executor: 'box', recorded, record: { cpu: 'EPYC', python } },
      ]);
    }
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    const attempts = page.getByTestId('attempts').locator('.attempt');
    const newest = attempts.last().locator('details');
    await newest.getByText('Python 3.11.7 · torch 2.3.0').click();
    await newest.getByText('torch==2.3.0').waitFor();
    await newest.getByText('EPYC').waitFor();
    const first = attempts.first().locator('details');
    await first.getByText('Environment').click();
    await first.getByText('torch==2.2.0').waitFor();
  });

  it('that the scheduler has paused shows why, and what it waits for', async () => {
    const world = promotingWorld();
    const trial = world.trial('s1', 1);
    trial.waiting_reason = 'the scheduler has not promoted it';
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/1');
    const why = page.getByTestId('why');
    await why.getByText('Paused at step 1: accuracy 0.5 is rank 2 of 2 at rung 1.').waitFor();
    expect(await why.textContent()).toContain('The scheduler has not promoted it.');
    expect(await page.locator('.page-head .state').textContent()).toBe('paused');
    const decision = page.getByTestId('decisions').locator('tbody tr').last();
    expect(await decision.locator('.state').textContent()).toContain('pause');
    await page.getByTestId('attempts').getByText('saved and left').waitFor();
    expect(await page.getByTestId('lineage').count()).toBe(0);
  });

  it('shows a promotion while the page is open, and the number of promotions', async () => {
    const world = promotingWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/0');
    await page.getByText('2 · promoted once').waitFor();
    await page.getByTestId('stream').getByText('live').waitFor();
    const trial = world.trial('s1', 0);
    world.report(trial, 3, { accuracy: 0.8 });
    pauseAt(world, trial, 3, 0.8);
    await page.locator('.page-head .state').getByText('paused').waitFor();
    world.promote(trial, 'promoted at rung 3');
    await page.locator('.page-head .state').getByText('running').waitFor();
    await page.getByText('3 · promoted twice').waitFor();
    const attempts = page.getByTestId('attempts');
    expect(await attempts.locator('.tag').allTextContents()).toEqual(['promoted', 'promoted']);
    await page.getByTestId('decisions').getByText('Promoted at rung 3.').waitFor();
    await attempts.getByText('resumed from step 3').waitFor();
  });

  it('does not mention a rank if no trial was ranked', async () => {
    const world = smallWorld();
    const facts = { rung: 0, value: 0.6, cutoff: null, rank: 0, peers: 0 };
    world.decide(world.trial('s1', 9), {
      ...{ step: 9, verdict: 'stop', reason: 'reached step 9, the last', rule: 'max_step' },
      ...facts,
    });
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    const decision = page.getByTestId('decisions').locator('tbody tr').last();
    await decision.getByText('Reached step 9, the last.').waitFor();
    expect(await decision.textContent()).not.toContain('0 of 0');
  });

  it('that has completed shows its last verdict as a success', async () => {
    const world = smallWorld();
    const trial = world.trialsOf('s1').find(({ state }) => state === 'completed');
    if (!trial) throw new Error('no trial has completed');
    const facts = { rung: 0, value: 0.6, cutoff: null, rank: 0, peers: 0 };
    world.decide(trial, {
      ...{ step: 9, verdict: 'stop', reason: 'reached step 9, the last', rule: 'max_step' },
      ...facts,
    });
    const page = await harness.open(
      await harness.serve(world),
      `/sweeps/s1/trials/${trial.number}`,
    );
    const verdict = page.getByTestId('decisions').locator('tbody tr').last().locator('.state');
    await verdict.getByText('complete').waitFor();
    expect(await verdict.getAttribute('class')).toContain('state-completed');
  });

  it('shows a failure with the last lines of the log', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1/trials/8');
    const attempts = page.getByTestId('attempts');
    await attempts.getByText('Rank 1 was killed by signal 9 (SIGKILL).').waitFor();
    await attempts.getByText('allocating 12 GiB for activations').waitFor();
    await page.getByText('Nothing to draw: every accuracy reported is NaN or infinite.').waitFor();
  });

  it('extends its curve and its decisions while the page is open', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    await waitForPoints(page, 3);
    await page.getByTestId('stream').getByText('live').waitFor();
    const trial = world.trial('s1', 9);
    world.report(trial, 4, { accuracy: 0.8 });
    world.report(trial, 5, { accuracy: 0.81 });
    await waitForPoints(page, 5);
    const facts = { rung: 9, value: 0.81, cutoff: 0.7, rank: 1, peers: 3 };
    world.decide(trial, {
      step: 5,
      verdict: 'continue',
      reason: 'among the best 1',
      rule: 'asha',
      ...facts,
    });
    await page.getByTestId('decisions').getByText('Among the best 1.').waitFor();
  });

  it('links to the next and the previous trial', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1/trials/9');
    await page.getByRole('heading', { name: 'Trial 9' }).waitFor();
    await page.keyboard.press('j');
    await page.getByRole('heading', { name: 'Trial 10' }).waitFor();
    await page.keyboard.press('u');
    await page.getByRole('heading', { name: 'fashion-mnist' }).waitFor();
  });

  it('that does not exist is named', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1/trials/99');
    await page.getByRole('alert').getByText('No such trial').waitFor();
  });
});

describe("a rank's log", () => {
  it('is followed while the rank runs', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    const log = page.getByTestId('log');
    await log.getByText('epoch 3').waitFor();
    await log.scrollIntoViewIfNeeded();
    world.log(world.trial('s1', 9), 0, 'a line written later\n');
    await log.getByText('a line written later').waitFor();
  });

  it('of another rank opens with one click', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1/trials/9');
    await page.getByRole('button', { name: 'rank 1' }).click();
    await page.getByTestId('log').getByText('rank 1: epoch 3 done').waitFor();
    expect(page.url()).toContain('rank=1');
  });

  it('shows the end of a long log, and earlier lines on request', async () => {
    const world = smallWorld();
    const trial = world.trial('s1', 9);
    const lines = Array.from({ length: 4000 }, (_, i) => `line ${i} of a log that is quite long\n`);
    world.log(trial, 0, lines.join(''));
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    const log = page.getByTestId('log');
    await log.getByText('line 3999 of a log').waitFor();
    expect(await log.textContent()).not.toContain('line 100 of');
    expect(await log.evaluate((element) => element.scrollTop > 0)).toBe(true);
    const earlier = page.getByRole('button', { name: /Earlier lines/ });
    while (await earlier.count()) {
      const before = (await log.textContent())?.length ?? 0;
      await earlier.click();
      await expect.poll(async () => (await log.textContent())?.length ?? 0).toBeGreaterThan(before);
    }
    expect(await log.textContent()).toContain('epoch 1  accuracy');
    const text = (await log.textContent()) ?? '';
    expect(text.match(/^line \d+ of/gm)).toHaveLength(4000);
  });

  it('is shown as unavailable when its executor is not connected', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.stranger();
    await page.route('**/logs?*', (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: JSON.stringify({
          title: 'Not connected',
          status: 503,
          detail: 'executor box, which holds the log, is not connected',
        }),
      }),
    );
    await page.goto(`${server.url}/login?token=test-token`);
    await page.goto(`${server.url}/sweeps/s1/trials/9`);
    await page
      .getByRole('alert')
      .getByText('executor box, which holds the log, is not connected')
      .waitFor();
  });
});

describe('the whole log', () => {
  it('is searched from match to match, and downloaded', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1/trials/3');
    await page.getByLabel('find').fill('/epoch [12] /');
    await page.getByRole('button', { name: 'Search the log' }).click();
    const matches = page.getByTestId('log-matches');
    await matches.getByText('2 lines of the whole log match.').waitFor();
    expect(await matches.locator('mark').allTextContents()).toEqual(['epoch 1 ', 'epoch 2 ']);

    const place = page.getByTestId('current-match');
    const line = matches.locator('[aria-current=true]');
    const expectAt = async (at: string, text: string): Promise<void> => {
      await place.getByText(at, { exact: true }).waitFor();
      expect(await line.allTextContents()).toEqual([expect.stringContaining(text)]);
    };
    await expectAt('1 of 2', 'epoch 1 ');
    await page.getByRole('button', { name: 'Next match' }).click();
    await expectAt('2 of 2', 'epoch 2 ');
    await page.getByRole('button', { name: 'Previous match' }).click();
    await expectAt('1 of 2', 'epoch 1 ');
    await page.getByLabel('find').press('Shift+Enter');
    await expectAt('2 of 2', 'epoch 2 ');
    await page.getByLabel('find').press('Enter');
    await expectAt('1 of 2', 'epoch 1 ');

    await page.getByLabel('find').fill('/(/');
    await page.getByRole('button', { name: 'Search the log' }).click();
    await page.getByRole('alert').getByText('Invalid regular expression').waitFor();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the log' }).click();
    expect((await saved).suggestedFilename()).toBe('s1-3-attempt-1-rank-0.log');
  });

  it('survives a regular expression that would take years', async () => {
    const world = smallWorld();
    world.log(world.trial('s1', 3), 0, `${'a'.repeat(60)}b\n`);
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/3');
    await page.clock.install();
    await page.getByLabel('find').fill('/(a+)+$/');
    await page.getByRole('button', { name: 'Search the log' }).click();
    const alert = page.getByRole('alert').getByText('The search for /(a+)+$/i was stopped');
    const isStopped = async (): Promise<boolean> => {
      await page.clock.fastForward(2000);
      return alert.isVisible();
    };
    await expect.poll(isStopped, { timeout: 20_000 }).toBe(true);
    await page.getByLabel('find').fill('aab');
    await page.getByLabel('find').press('Enter');
    await page.getByTestId('log-matches').getByText('1 line of the whole log').waitFor();
  });
});
