import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import type { Amount, Executor, Fleet } from '../../../web/src/api/contract';
import { smallWorld } from '../mock/scenarios';
import { usageWorld } from '../mock/usage';
import { World } from '../mock/world';
import { Harness, row } from './harness';

const harness = new Harness();

describe('the list of sweeps', () => {
  it('shows every sweep, newest first, with its state, best and progress', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/');
    const rows = page.locator('tbody tr');
    await rows.first().waitFor();
    expect(await rows.locator('th a:not(.tag)').allTextContents()).toEqual([
      'fashion-mnist',
      'transformer-large',
      'resnet-baseline',
    ]);
    const first = rows.first();
    expect(await first.locator('.state').textContent()).toBe('running');
    expect(await first.locator('.progress').textContent()).toContain(
      '2 running, 6 completed, 2 stopped, 1 failed',
    );
    await first.locator('.spark').waitFor();
    expect(await rows.nth(1).textContent()).toContain('waiting');
  });

  it('shows changes of a sweep, and a new sweep', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/');
    await page.getByTestId('stream').getByText('live').waitFor();
    world.report(world.trial('s1', 10), 2, { accuracy: 0.9876 });
    await page.getByText('0.9876').waitFor();
    world.addSweep({ id: 's4', name: 'brand-new' });
    await page.getByRole('link', { name: 'brand-new' }).waitFor();
    world.stopSweep('s4', 'stopped', 'the sweep was stopped on request');
    await page.getByText('ending').waitFor();
  });

  it('is navigated by j and k and opened by Enter', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/');
    await page.locator('tbody tr').first().waitFor();
    for (const key of ['j', 'j', 'j', 'k']) await page.keyboard.press(key);
    expect(new URL(page.url()).searchParams.get('sweep')).toBe('s3');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'transformer-large' }).waitFor();
  });

  it('is filtered from the keyboard', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/');
    await page.locator('tbody tr').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('resnet');
    await page.getByRole('link', { name: 'fashion-mnist' }).waitFor({ state: 'detached' });
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect(page.url()).toContain('q=resnet');
    await page.locator('input[type=search]').fill('nightly'); // a tag of the same sweep
    await page.waitForURL(/q=nightly/);
    await page.getByRole('link', { name: 'resnet-baseline' }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    await page.locator('input[type=search]').fill('tag:night'); // not the whole tag
    await page.getByText('No sweep matches').waitFor();
    await page.locator('input[type=search]').fill('');
    await page.getByRole('link', { name: 'nightly' }).click();
    await page.waitForURL(/q=tag%3Anightly/);
    await page.getByRole('link', { name: 'fashion-mnist' }).waitFor({ state: 'detached' });
  });

  it('says how to start the first sweep', async () => {
    const page = await harness.open(await harness.serve(new World()), '/');
    await page.getByText('No sweep yet').waitFor();
  });
});

describe('a browser without a token', () => {
  it('is told how to log in, logs in by the token, and logs out', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.stranger();
    await page.goto(`${server.url}/sweeps/s1`);
    await page.getByRole('heading', { name: 'This browser is not logged in' }).waitFor();
    expect(await page.locator('main').textContent()).toContain('attune login');
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('does not know the token').waitFor();
    await page.getByLabel('Token').fill('test-token');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'fashion-mnist' }).waitFor();
    expect(page.url()).toBe(`${server.url}/sweeps/s1`);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'This browser is not logged in' }).waitFor();
  });
});

describe('the executors', () => {
  it('are in the header and on their own page', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/executors');
    await page.getByRole('rowheader', { name: 'node-7' }).waitFor();
    const strip = await page.locator('.strip').textContent();
    expect(strip).toContain('1 executor (1 lost)');
    expect(strip).toContain('4/8 CPUs free');
    expect(await page.locator('tbody tr').first().textContent()).toContain('4 of 8');
    expect(await page.locator('tbody tr').first().textContent()).toContain('zone=a');
    expect(await page.getByRole('link', { name: 's1/9' }).getAttribute('href')).toBe(
      '/sweeps/s1/trials/9',
    );
  });

  it('are drained for a reason, and resumed', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/executors');
    await page.getByRole('button', { name: 'Drain box' }).click();
    await page.getByLabel('Reason').fill('a new disk');
    await page.getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Drain', exact: true }).click();
    await page.getByText('A new disk.').waitFor();
    expect(server.bodies.at(-1)).toEqual({ reason: 'a new disk', now: true });
    expect(await page.locator('.strip').textContent()).toContain('(1 out');
    await page.getByRole('button', { name: 'Resume box' }).click();
    await page.getByRole('button', { name: 'Drain box' }).waitFor();
  });

  it('show what is wrong with executors that start no trial', async () => {
    const world = smallWorld();
    const [box, node] = world.executors as [Executor, Executor];
    world.executors = [
      {
        ...box,
        state: 'unhealthy',
        health_problem: 'its disk has 0.2 GiB left (/data), less than 1.0 GiB',
      },
      {
        ...node,
        state: 'quarantined',
        quarantine: { until: '2026-11-22T10:00:00.000000Z', reason: '4 gangs of 4 trials failed' },
      },
    ];
    const page = await harness.open(await harness.serve(world), '/executors');
    await page.getByText('Its disk has 0.2 GiB left (/data), less than 1.0 GiB.').waitFor();
    await page.getByText('4 gangs of 4 trials failed.').waitFor();
    await page.getByText('quarantined', { exact: false }).first().waitFor();
    await page.getByRole('button', { name: 'Resume node-7' }).waitFor();
    expect(await page.locator('.strip').textContent()).toContain('(2 out');
  });
});

describe('a narrow window', () => {
  it.each([
    ['/', 390],
    ['/', 1280],
    ['/sweeps/s1', 390],
    ['/sweeps/s1?tab=file', 390],
    ['/sweeps/s1/trials/8', 390],
    ['/executors', 390],
    ['/queue', 390],
    ['/compare?sweeps=s1,s2', 390],
    ['/sweeps/s1/compare?trials=0,8', 390],
  ])('shows %s at %i px without cutting it', async (path, width) => {
    const world = usageWorld();
    const name = 'a-sweep-with-a-very-long-name-'.repeat(5);
    world.sweep('s1').name = name;
    for (const gang of world.queue) gang.sweep_name = name;
    const page = await harness.open(await harness.serve(world), path, {
      viewport: { width, height: 900 },
    });
    await page.locator('main table, main pre').first().waitFor();
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
    expect(await wide()).toBeLessThanOrEqual(width);
    if (!['/', '/executors', '/queue'].includes(path)) return;
    // The table itself does not scroll sideways either.
    const list = page.locator('.table-scroll').first();
    const [inner, outer] = await list.evaluate((box) => [box.scrollWidth, box.clientWidth]);
    expect(inner).toBeLessThanOrEqual(outer as number);
  });
});

describe('the resources of an executor', () => {
  it('are told as reserved, and apart from what is free on its host', async () => {
    const world = smallWorld();
    const [box] = world.executors;
    if (box) box.memory_free_bytes = box.memory_bytes;
    const page = await harness.open(await harness.serve(world), '/executors');
    await page.getByRole('columnheader', { name: 'memory reserved' }).waitFor();
    const row = page.getByRole('row', { name: /^box/ });
    expect(await row.textContent()).toContain('none of 23.4 GiB');
    expect(await row.textContent()).toContain('9.0 GiB of memory');
    expect(await page.getByText('in use').count()).toBe(0);
  });
});

describe('the pilots', () => {
  const amount = (gpus: number): Amount => ({ nodes: gpus / 8, cpus: gpus * 4, gpus });
  const fleet: Fleet = {
    fleet: '91c07ab2',
    system: 'Slurm',
    host: 'login1',
    partition: 'gpu',
    poll_seconds: 5,
    nodes_min: 0,
    nodes_max: 8,
    nodes_per_pilot: 2,
    pilots: [
      {
        name: 'attune-91c07ab2-1',
        job: '841',
        state: 'RUNNING',
        reason: '',
        nodes: 2,
        node_list: 'g[17-18]',
        end_time: '2026-11-22T20:14:02',
        ran_seconds: 754,
        executors: ['box'],
      },
      {
        name: 'attune-91c07ab2-2',
        job: '842',
        state: 'PENDING',
        reason: 'QOSMaxGRESPerUser',
        nodes: 2,
        node_list: '',
        end_time: 'N/A',
        ran_seconds: 0,
        executors: [],
      },
    ],
    blockers: [{ sweep: '', text: '1 pilot is PENDING (QOSMaxGRESPerUser)' }],
    hours: { allocated: amount(12), in_use: amount(9), idle: amount(3), unobserved: amount(0) },
    seconds_since_report: 2,
    stale: false,
  };

  it('are not shown if there are none', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/executors');
    await page.getByRole('rowheader', { name: 'node-7' }).waitFor();
    expect(await page.getByText('Pilots').count()).toBe(0);
  });

  it('are below the executors, with their costs and the reasons why they wait', async () => {
    const world = smallWorld();
    world.pilots = [fleet];
    const page = await harness.open(await harness.serve(world), '/executors');
    const panel = page.getByRole('region', { name: 'Pilots of Slurm' });
    await panel.getByRole('rowheader', { name: 'attune-91c07ab2-2' }).waitFor();
    const text = await panel.textContent();
    expect(text).toContain('1 pilot is PENDING (QOSMaxGRESPerUser).');
    expect(text).toContain('GPU-hours: 12.00 allocated, 9.00 in use (75 %), 3.00 idle');
    const row = await panel.locator('tbody tr').first().textContent();
    expect(row).toContain('1 of 2');
    expect(row).toContain('4 of 8');
    expect(row).toContain('12 min 34 s');
  });

  it('are marked as outdated when their manager is silent', async () => {
    const world = smallWorld();
    world.pilots = [{ ...fleet, stale: true, seconds_since_report: 120 }];
    const page = await harness.open(await harness.serve(world), '/executors');
    await page.getByText('Their manager has been silent for 2 min 00 s').waitFor();
    expect(await page.getByText('1 pilot is PENDING').count()).toBe(0);
  });
});

describe('the theme', () => {
  const ground = 'getComputedStyle(document.body).backgroundColor';

  it('follows the system, can be chosen, and is kept', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/', { colorScheme: 'dark' });
    await page.locator('tbody tr').first().waitFor();
    const dark = await page.evaluate<string>(ground);
    await page.getByRole('button', { name: 'Theme: system' }).click();
    const light = await page.evaluate<string>(ground);
    expect(light).not.toBe(dark);
    await page.reload();
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
    expect(await page.evaluate<string>(ground)).toBe(light);
    await page.keyboard.press('t');
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
    expect(await page.evaluate<string>(ground)).toBe(dark);
  });
});

describe('the keyboard', () => {
  it('can skip the header', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/');
    await page.locator('tbody tr').first().waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/^Skip\b/);
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
  });

  it('shows its keys and closes them again', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/');
    await page.locator('tbody tr').first().waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'detached' });
  });
});

describe('a wide window', () => {
  it('is used by the page of a sweep, with two columns of cards', async () => {
    const width = 2560;
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1', {
      viewport: { width, height: 1200 },
    });
    const chart = page.locator('.overview > .panel');
    await chart.waitFor();
    const room = await chart.evaluate((panel) => panel.clientWidth);
    expect(room).toBeGreaterThan(0.6 * width);
    const cards = page.locator('.side > .card');
    await cards.nth(1).waitFor();
    const lefts = await cards.evaluateAll((all) =>
      all.map((each) => each.getBoundingClientRect().left),
    );
    expect(new Set(lefts).size).toBe(2);
  });
});

describe('the commands', () => {
  const openPalette = async (page: Page) => {
    await page.keyboard.press('Control+k');
    const palette = page.getByRole('dialog', { name: 'Commands' });
    await palette.getByRole('option').first().waitFor();
    return palette;
  };

  it('find a view, an action, a sweep and a trial from the keyboard', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await row(page, 9).waitFor();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    let palette = await openPalette(page);
    await page.keyboard.type('hstry');
    await palette.getByRole('option', { name: 'History' }).waitFor();
    await page.keyboard.press('Enter');
    await page.locator('[data-testid=history]').waitFor();

    palette = await openPalette(page);
    await page.keyboard.type('kill');
    await palette.getByRole('option', { selected: true }).getByText('Kill…').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Kill fashion-mnist?' }).waitFor();
    await page.keyboard.press('Escape');

    palette = await openPalette(page);
    await page.keyboard.type('9');
    await palette.getByRole('option', { selected: true }).getByText('s1/9').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/sweeps\/s1\/trials\/9$/);

    palette = await openPalette(page);
    await page.keyboard.type('resnet');
    await palette.getByRole('option', { name: 's2 resnet-baseline' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/sweeps\/s2$/);
  });

  it('say that nothing matches, and are without the actions of others for a viewer', async () => {
    const world = smallWorld();
    world.role = 'viewer';
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByTitle('End the session of ada').waitFor();
    const palette = await openPalette(page);
    await page.keyboard.type('enqueue');
    await palette.getByText('Nothing matches.').waitFor();
    await page.keyboard.press('Escape');
    await palette.waitFor({ state: 'detached' });
  });
});
