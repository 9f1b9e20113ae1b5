import { describe, expect, it } from 'vitest';

import type { Amount, Executor, Fleet } from '../../../web/src/api/contract';
import { smallWorld } from '../mock/scenarios';
import { World } from '../mock/world';
import { Harness } from './harness';

const harness = new Harness();

describe('the list of sweeps', () => {
  it('shows every sweep, newest first, with its state, best and progress', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/');
    const rows = page.locator('tbody tr');
    await rows.first().waitFor();
    expect(await rows.locator('th a').allTextContents()).toEqual([
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
    expect(await page.locator('.strip').textContent()).toContain('(1 out of service)');
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
    expect(await page.locator('.strip').textContent()).toContain('(2 out of service)');
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
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to content');
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
