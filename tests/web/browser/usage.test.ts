import { describe, expect, it } from 'vitest';

import { heldAttempt, queuedGang, usageWorld } from '../mock/usage';
import { World } from '../mock/world';
import { smallWorld } from '../mock/scenarios';
import { Harness } from './harness';

const harness = new Harness();

describe('the cost of a sweep', () => {
  it('shows the used, wasted and saved hours and their price', async () => {
    const page = await harness.open(await harness.serve(usageWorld()), '/sweeps/s1');
    const card = page.getByTestId('cost');
    await card.waitFor();
    expect(await card.locator('.headline').textContent()).toBe('12.5GPU hours · 25.00 EUR');
    const rows = await card.locator('tbody tr').allTextContents();
    expect(rows).toEqual(['used12.5', 'wasted2.50 EUR1.25', 'saved62.80 EUR≈about 31.4']);
    expect(await card.textContent()).toContain(
      '13 attempts, 2 running, 3 failed or lost; 2 trials stopped early.',
    );
  });

  it('is read again when trials end', async () => {
    const world = usageWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const card = page.getByTestId('cost');
    await card.waitFor();
    const cost = world.costs.get('s1');
    if (cost) world.costs.set('s1', { ...cost, used_hours: 13, price: null });
    world.change(world.trial('s1', 10), 'completed', 'done');
    await card.getByText('13GPU hours').waitFor();
  });

  it('is missing before the first attempt', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByTestId('importance').getByText('20 trials').waitFor();
    expect(server.requests).toContain('GET /sweeps/s1/cost');
    expect(await page.getByTestId('cost').count()).toBe(0);
  });
});

describe('the timeline of executors', () => {
  it('draws a bar for each attempt and slot, and opens the trial', async () => {
    const world = usageWorld();
    world.held = [heldAttempt(Date.now(), 60, null, { trial: 3 })];
    world.occupancy = world.occupancy.slice(0, 1);
    world.held[0]!.ranks[0]!.gpus = [];
    const page = await harness.open(await harness.serve(world), '/executors');
    const canvas = page.locator('canvas[data-bars="1"]');
    await canvas.waitFor();
    const box = (await canvas.boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + 34);
    const tip = page.locator('.slot-tip');
    await tip.waitFor();
    expect(await tip.textContent()).toContain('s1/3');
    expect(await tip.textContent()).toContain('attempt 1 on box, rank 0');
    await page.mouse.click(box.x + box.width / 2, box.y + 34);
    await page.waitForURL(/sweeps\/s1\/trials\/3$/);
  });

  it('has a table with links', async () => {
    const world = usageWorld();
    const page = await harness.open(await harness.serve(world), '/executors');
    const chart = page.getByRole('figure', { name: 'Timeline' });
    await chart.getByRole('button', { name: 'Table' }).click();
    const rows = chart.locator('tbody tr');
    expect(await rows.count()).toBe(world.held.length);
    expect(await rows.first().locator('a').getAttribute('href')).toMatch(
      /^\/sweeps\/s\d\/trials\//,
    );
    expect(await rows.first().textContent()).toContain('GPU 0');
  });

  it('asks for the chosen period', async () => {
    const server = await harness.serve(usageWorld());
    const page = await harness.open(server, '/executors');
    await page.getByLabel('period').selectOption('last day');
    await expect
      .poll(() => {
        const last = server.requests.filter((each) => each.includes('/timeline?')).at(-1) ?? '';
        const since = new URLSearchParams(last.split('?')[1]).get('since') ?? '';
        return Math.round((Date.now() - Date.parse(since)) / 3_600_000);
      })
      .toBe(24);
  });

  it('shows the occupancy of hosts and GPUs', async () => {
    const page = await harness.open(await harness.serve(usageWorld()), '/executors');
    const rows = page.getByTestId('occupancy').locator('tbody tr');
    await rows.first().waitFor();
    expect(await rows.allTextContents()).toContain('gpu-1GPU 097%78%68%');
    expect(await rows.first().textContent()).toBe('boxCPUs42%34%29%');
  });
});

describe('the queue', () => {
  it('is a page of the navigation, in order, with reasons', async () => {
    const page = await harness.open(await harness.serve(usageWorld()), '/');
    await page.getByRole('link', { name: 'Queue' }).click();
    await page.getByRole('heading', { name: 'Queue', exact: true }).waitFor();
    const ready = page.getByRole('region', { name: 'Wait for free slots' }).locator('tbody tr');
    await ready.first().waitFor();
    expect(await ready.count()).toBe(3);
    expect(await ready.first().textContent()).toContain('needs 8 GPUs'.replace('n', 'N'));
    expect(await ready.nth(2).textContent()).toContain('up to 39 new trials');
    const others = page.getByRole('region', { name: 'Wait for something else' });
    expect(await others.locator('tbody tr').textContent()).toContain('Not before');
    await ready.nth(1).getByRole('link', { name: 's1/11' }).click();
    await page.waitForURL(/sweeps\/s1\/trials\/11$/);
  });

  it('follows events', async () => {
    const world = usageWorld();
    const page = await harness.open(await harness.serve(world), '/queue');
    await page.getByText('up to 39 new trials').waitFor();
    world.queue = [];
    world.change(world.trial('s1', 10), 'completed', 'done');
    await page.getByText('Nothing waits').waitFor();
  });

  it('shows more entries on request', async () => {
    const world = new World();
    world.queue = Array.from({ length: 600 }, (_, i) => queuedGang(i + 1));
    const page = await harness.open(await harness.serve(world), '/queue');
    await page.getByText('The first 100 of 600.').waitFor();
    await page.getByRole('button', { name: 'Show up to 500' }).click();
    await page.getByText('The first 500 of 600.').waitFor();
    expect(await page.locator('tbody tr').count()).toBe(500);
  });
});
