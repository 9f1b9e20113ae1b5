import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import type { TrialDetail, UserAction } from '../../../web/src/api/contract';

import {
  conditionalWorld,
  failingWorld,
  frontWorld,
  largeWorld,
  populationWorld,
  promotingWorld,
  smallWorld,
  threeMetricWorld,
} from '../mock/scenarios';
import { Harness, pointAtFirst } from './harness';

const harness = new Harness();

describe('the results', () => {
  it('are shown as a distribution, without trials that have no value', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByLabel('More views').selectOption('Distribution');
    await page.getByRole('heading', { name: 'share of trials by accuracy' }).waitFor();
    await page.getByText('The share of 10 trials whose best accuracy').waitFor();
    await page.getByText('1 trial without a value.').waitFor();
    expect(new URL(page.url()).searchParams.get('view')).toBe('distribution');
  });

  it('of three metrics are shown as a plot for each pair', async () => {
    const page = await harness.open(
      await harness.serve(threeMetricWorld()),
      '/sweeps/s1?view=fronts',
    );
    await page.locator('[data-testid=pair][data-dots="4"][data-front="3"]').nth(2).waitFor();
    await page.getByText('Large dots: the 3 reports that no other beats').waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.getByRole('region', { name: 'The front as a table' });
    expect(await table.locator('tbody tr').count()).toBe(3);
  });

  it('of several metrics have a hypervolume with its reference point', async () => {
    const page = await harness.open(
      await harness.serve(frontWorld()),
      '/sweeps/s1?view=hypervolume',
    );
    await page.locator('[data-testid=series][data-series="1"]').waitFor();
    await page.getByText('accuracy 0.7000, latency_ms 30; the worst value').waitFor();
    await page.getByLabel('reference accuracy').fill('0');
    await page.getByLabel('reference accuracy').press('Tab');
    await page.getByText('accuracy 0, latency_ms 30)').waitFor();
    expect(new URL(page.url()).searchParams.get('ref')).toBe('0,30');
    // 0.8 × (30 − 12)
    await page.getByText('Now 14.40; trial 0 was the last to improve it.').waitFor();
  });
});

describe('the model of the best trial', () => {
  it('is used with a command, with Python and with C++', async () => {
    const world = smallWorld();
    const best = world.sweep('s1').best?.trial;
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByRole('button', { name: 'Use this model' }).click();
    const panel = page.getByTestId('use-model');
    await panel.getByText(`attune checkpoint get s1/${best}/1-9 --out model`).waitFor();
    await panel.getByText(`Server().sweep("s1").trial(${best})`).waitFor();
    await panel.getByText('load_file(folder / "model.safetensors")').waitFor();
    await panel.getByText('checkpoint.Read("model", *model)').waitFor();
    await panel.getByText('box', { exact: true }).waitFor();
  });

  it('is downloaded as an archive', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1/trials/3');
    await page.getByRole('button', { name: 'Use this model' }).click();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download s1-3-step-9.tar' }).click();
    const download = await saved;
    expect(download.suggestedFilename()).toBe('s1-3-step-9.tar');
    const archive = readFileSync(await download.path()).toString('latin1');
    expect(archive).toContain('s1-3-step-9/model.safetensors');
    expect(archive).toContain('the weights of the model');
  });
});

describe('failures', () => {
  it('of a failed sweep begin with the first cause', async () => {
    const page = await harness.open(await harness.serve(failingWorld()), '/sweeps/s1');
    const cause = page.getByTestId('cause');
    await cause.getByText('Rank 1: cannot read /data/part-0.csv.').waitFor();
    await cause.getByText('Rank 1 of trial 0, attempt 1, on box').waitFor();
    await cause.getByText('No such file or directory').waitFor();
    expect(await cause.getByRole('link', { name: 'Its log' }).getAttribute('href')).toBe(
      '/sweeps/s1/trials/0?attempt=1&rank=1',
    );
  });

  it('are grouped by message in a card, which leads to all of them', async () => {
    const page = await harness.open(await harness.serve(failingWorld()), '/sweeps/s1');
    const card = page.getByTestId('failures-card');
    await card.getByText('5 × rank N: cannot read /data/part-N.csv').waitFor();
    await card.getByText('1 × rank N left with exit code 137').waitFor();
    await card.getByRole('link', { name: '6 attempts of 6 trials' }).click();
    const view = page.getByTestId('failures');
    await view.getByText('6 attempts of 6 trials failed or were lost, in 2 groups').waitFor();
    expect(await view.locator('tbody tr').count()).toBe(2);
    await view.getByRole('link', { name: 'trial 4' }).first().waitFor();
    expect(new URL(page.url()).searchParams.get('view')).toBe('failures');
  });

  it('are neither read nor shown while there are none', async () => {
    const server = await harness.serve(frontWorld());
    const page = await harness.open(server, '/sweeps/s1');
    await page.locator('tr[data-trial]').first().waitFor();
    expect(await page.getByTestId('failures-card').count()).toBe(0);
    expect(server.requests.filter((each) => each.includes('/failures'))).toEqual([]);
  });
});

describe('how parameters act', () => {
  it('is shown for each parameter and for any metric', async () => {
    const page = await harness.open(await harness.serve(largeWorld(60)), '/sweeps/big');
    await page.getByLabel('More views').selectOption('Slices');
    const slices = page.locator('[data-testid=slice][data-dots]');
    await expect.poll(() => slices.count()).toBe(4);
    await page.getByText('Line and band: the mean and one standard deviation').waitFor();
    await page.getByRole('button', { name: 'Enqueue…' }).waitFor();
    await pointAtFirst(page, slices.first().locator('.u-over'), 0.5);
    await page.mouse.down();
    await page.mouse.up();
    await page.getByRole('button', { name: 'Enqueue a copy…' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('combobox', { name: 'of', exact: true }).selectOption('loss');
    await page.getByRole('heading', { name: 'loss by each parameter' }).waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.getByRole('region', { name: 'Predictions as a table' });
    expect(await table.locator('tbody tr').count()).toBe(4);
  });

  it('is predicted for two parameters', async () => {
    const page = await harness.open(
      await harness.serve(largeWorld(60)),
      '/sweeps/big?view=contour&across=momentum&up=optimizer',
    );
    const contour = page.locator('[data-testid=contour][data-cells]');
    await contour.waitFor();
    expect(Number(await contour.getAttribute('data-cells'))).toBeGreaterThan(40);
    await page.getByRole('combobox', { name: 'up', exact: true }).selectOption('lr');
    await page.getByRole('heading', { name: 'accuracy by momentum and lr' }).waitFor();
    expect(new URL(page.url()).searchParams.get('up')).toBe('lr');
  });

  it('says that a model needs more trials', async () => {
    const page = await harness.open(
      await harness.serve(conditionalWorld()),
      '/sweeps/s1?view=slices',
    );
    await page.getByText('A model needs 10 trials with a value.').waitFor();
  });
});

describe('the activity of users', () => {
  it('names who did what, with old and new values, and follows the sweep', async () => {
    const world = smallWorld();
    const time = '2026-11-21T10:00:00.000000Z';
    const edit: UserAction = {
      seq: 5,
      time,
      actor: 'ada',
      action: 'edit',
      trial: null,
      detail: 'priority 3 (was 0)',
    };
    world.actions.set('s1', [edit]);
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByLabel('More views').selectOption('Activity');
    const rows = page.getByTestId('activity').locator('tbody tr');
    await rows.getByText('edited the sweep').waitFor();
    await rows.getByText('priority 3 (was 0)').waitFor();
    expect(new URL(page.url()).searchParams.get('view')).toBe('activity');

    const kill: UserAction = {
      ...edit,
      seq: 6,
      actor: 'bob',
      action: 'kill',
      trial: 9,
      detail: '',
    };
    world.actions.set('s1', [kill, edit]);
    world.pin(world.trialsOf('s1')[3] as TrialDetail, 1, 9, true);
    await rows.getByText('killed a trial').waitFor();
    expect(await rows.getByRole('link').getAttribute('href')).toBe('/sweeps/s1/trials/9');
  });
});

describe('the lineage of a sweep', () => {
  it('has a lane for each trial of a clone', async () => {
    const page = await harness.open(await harness.serve(populationWorld()), '/sweeps/s1');
    await page.getByLabel('More views').selectOption('Lineage');
    const lanes = page.locator('[data-testid=lineage-lanes][data-lanes="2"]');
    await lanes.waitFor();
    expect(await lanes.locator('.lane-clone').count()).toBe(1);
    await page.getByText('2 trials continue weights of trial 0.').waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.getByRole('region', { name: 'Clones and promotions' });
    expect(await table.locator('tbody tr').allTextContents()).toEqual(['33continues trial 0']);
  });

  it('marks promotions', async () => {
    const page = await harness.open(
      await harness.serve(promotingWorld()),
      '/sweeps/s1?view=lineage',
    );
    await page.getByText('1 promotion, each a mark').waitFor();
    expect(await page.locator('.lane-promotion').count()).toBe(1);
  });

  it('says that there is none', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1?view=lineage');
    await page.getByText('No trial was cloned or promoted.').waitFor();
  });
});
