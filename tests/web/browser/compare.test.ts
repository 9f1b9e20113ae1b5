import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { smallWorld } from '../mock/scenarios';
import { Harness } from './harness';

const harness = new Harness();

async function cells(page: Page, id: string, row: string): Promise<string[]> {
  const found = page.getByTestId(id).locator('tr', { has: page.getByText(row, { exact: true }) });
  await found.first().waitFor({ state: 'attached' });
  return found.first().locator('td').allTextContents();
}

describe('a comparison of trials', () => {
  it('is opened from rows that were chosen in the table', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByLabel('Compare trial 0', { exact: true }).check();
    await page.getByRole('link', { name: 'Compare trial 0…' }).waitFor();
    await page.locator('tr[data-trial="8"] .reason').click({ modifiers: ['Shift'] });
    expect(new URL(page.url()).searchParams.get('pick')).toBe('0,8');
    await page.getByRole('link', { name: 'Compare 2 trials' }).click();
    await page.getByRole('heading', { name: 'Compare 2 trials' }).waitFor();
    expect(page.url()).toMatch(/\/sweeps\/s1\/compare\?trials=0,8$/);
    await page.goBack();
    expect(await page.getByLabel('Compare trial 8', { exact: true }).isChecked()).toBe(true);
    await page.getByRole('button', { name: 'Clear' }).click();
    expect(await page.locator('.compare-chosen').count()).toBe(0);
  });

  it('is opened from the page of a trial, with the best one', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/8');
    await page.getByRole('link', { name: 'Compare with the best' }).click();
    await page.getByRole('heading', { name: 'Compare 2 trials' }).waitFor();
    const best = world.sweep('s1').best?.trial;
    expect(new URL(page.url()).searchParams.get('trials')).toBe(`8,${best}`);
  });

  it('marks the parameters that differ and folds the equal ones', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/compare?trials=0,1,9');
    const table = page.getByTestId('configurations');
    await table.getByText('equal parameter').waitFor();
    const marked = await table.locator('tr.differs th').allTextContents();
    expect(marked).toContain('≠ lr');
    expect(marked).not.toContain('≠ batch');
    expect(await table.getByText('128').first().isVisible()).toBe(false);
    await table.getByText('equal parameter').click();
    expect(await cells(page, 'configurations', 'batch')).toEqual(['128', '128', '128']);
  });

  it('draws the curves over each other, of a metric that the reader chooses', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/compare?trials=0,9');
    await page.locator('[data-testid=curves][data-lines="2"]').waitFor();
    await page.getByLabel('metric').selectOption('loss');
    await page.getByText('Last loss: trial 0').waitFor();
    expect(new URL(page.url()).searchParams.get('metric')).toBe('loss');
    world.report(world.trial('s1', 9), 4, { accuracy: 0.5, loss: 0.1234 });
    await page.getByText('trial 9 0.1234').waitFor();
  });

  it('shows how the trials went, with their attempts and checkpoints', async () => {
    const page = await harness.open(
      await harness.serve(smallWorld()),
      '/sweeps/s1/compare?trials=0,8',
    );
    const attempts = await cells(page, 'course', 'attempts');
    expect(attempts[1]).toBe('1 failed on box. Rank 1 was killed by signal 9 (SIGKILL).');
    expect((await cells(page, 'course', 'checkpoints'))[1]).toBe('none kept');
    expect((await cells(page, 'course', 'checkpoints'))[0]).toMatch(/^step \d+ 421 KiB$/);
  });

  it('scrolls the logs together, unless the reader turns this off', async () => {
    const world = smallWorld();
    const [one, other] = [world.trial('s1', 0), world.trial('s1', 1)];
    world.log(one, 0, 'line of trial 0\n'.repeat(200));
    world.log(other, 0, 'line of trial 1\n'.repeat(400));
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/compare?trials=0,1');
    const logs = page.getByTestId('logs');
    const view = (number: number) => logs.getByLabel(`Log of trial ${number}`);
    const share = (number: number) =>
      view(number).evaluate((e) => e.scrollTop / (e.scrollHeight - e.clientHeight));
    await expect.poll(() => view(1).textContent()).toContain('line of trial 1');
    await expect.poll(() => share(1)).toBeGreaterThan(0.99);
    await view(0).evaluate((e) => (e.scrollTop = (e.scrollHeight - e.clientHeight) / 2));
    await expect.poll(() => share(1)).toBeCloseTo(0.5, 1);
    await logs.getByLabel('scroll together').uncheck();
    await view(0).evaluate((e) => (e.scrollTop = 0));
    await expect.poll(() => share(0)).toBe(0);
    expect(await share(1)).toBeCloseTo(0.5, 1);
  });

  it('adds and removes trials, up to five', async () => {
    const page = await harness.open(
      await harness.serve(smallWorld()),
      '/sweeps/s1/compare?trials=0,1,2,3',
    );
    await page.getByLabel('trial', { exact: true }).fill('9');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('heading', { name: 'Compare 5 trials' }).waitFor();
    expect(await page.getByRole('button', { name: 'Add' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Remove trial 1' }).click();
    await page.getByRole('heading', { name: 'Compare 4 trials' }).waitFor();
    expect(new URL(page.url()).searchParams.get('trials')).toBe('0,2,3,9');
  });

  it('says which trials do not exist', async () => {
    const page = await harness.open(
      await harness.serve(smallWorld()),
      '/sweeps/s1/compare?trials=0,99',
    );
    await page.getByText('The sweep has no trial 99.').waitFor();
  });
});

describe('a comparison of sweeps', () => {
  it('is opened from the page of a sweep', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByRole('link', { name: 'Compare with…' }).click();
    await page.getByRole('combobox', { name: 'sweep', exact: true }).selectOption('s2');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('heading', { name: 'Compare 2 sweeps' }).waitFor();
    expect(page.url()).toMatch(/\/compare\?sweeps=s1,s2$/);
  });

  it('shows how their specifications differ', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/compare?sweeps=s1,s2');
    expect(await cells(page, 'specifications', 'name')).toEqual([
      'fashion-mnist',
      'resnet-baseline',
    ]);
    expect(await cells(page, 'specifications', 'stop.max_trials')).toEqual(['12', '9']);
    const table = page.getByTestId('specifications');
    expect(await table.locator('.differs').count()).toBe(2);
  });

  it('draws the best value so far over time and over trials, and the distributions', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/compare?sweeps=s1,s2');
    const plots = page.locator('[data-testid=series][data-series="2"]');
    await plots.nth(1).waitFor();
    await page.getByRole('heading', { name: 'best accuracy by time' }).waitFor();
    await page.getByLabel('by').selectOption('trials');
    await page.getByRole('heading', { name: 'best accuracy by trial' }).waitFor();
    expect(new URL(page.url()).searchParams.get('x')).toBe('number');
    await page.getByRole('heading', { name: 'share of trials by accuracy' }).waitFor();
  });

  it('counts trials and time', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/compare?sweeps=s1,s2');
    expect(await cells(page, 'totals', 'trials')).toEqual(['9 of 11 ended', '9 of 9 ended']);
    const [best] = await cells(page, 'totals', 'best');
    expect(best).toMatch(/^0\.\d+ accuracy, trial \d+ at step \d+$/);
  });

  it('names sweeps with other metrics instead of drawing them', async () => {
    const world = smallWorld();
    Object.assign(world.sweep('s3'), { metric: { name: 'loss', mode: 'min' } });
    const page = await harness.open(await harness.serve(world), '/compare?sweeps=s1,s3');
    await page.locator('[data-testid=series][data-series="1"]').first().waitFor();
    await page.getByText('Not drawn, because it has another metric: s3').first().waitFor();
  });
});

describe('code that the first view does not need', () => {
  it('is read when it is needed', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.stranger();
    const read: string[] = [];
    page.on('request', (request) => read.push(new URL(request.url()).pathname));
    await page.goto(`${server.url}/login?token=test-token`);
    await page.goto(`${server.url}/sweeps/s1`);
    await page.locator('tr[data-trial]').first().waitFor();
    const scripts = (): string[] => read.filter((path) => /compare_.*\.js$/.test(path));
    expect(scripts()).toEqual([]);
    await page.goto(`${server.url}/compare?sweeps=s1,s2`);
    await page.getByTestId('totals').waitFor();
    expect(scripts().length).toBeGreaterThan(0);
  });
});
