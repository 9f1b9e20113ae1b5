import { describe, expect, it } from 'vitest';

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

  it('follows a sweep that changes, and one that is new', async () => {
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

  it('is walked by j and k and opened by Enter', async () => {
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
  });

  it('says how to begin when there is none', async () => {
    const page = await harness.open(await harness.serve(new World()), '/');
    await page.getByText('No sweep yet').waitFor();
  });
});

describe('a browser without a token', () => {
  it('is told how to sign in, and is signed in by the token', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.stranger();
    await page.goto(`${server.url}/sweeps/s1`);
    await page.getByRole('heading', { name: 'This browser is not signed in' }).waitFor();
    expect(await page.locator('main').textContent()).toContain('/login?token=');
    await page.getByLabel('Token').fill('test-token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'fashion-mnist' }).waitFor();
  });
});

describe('the executors', () => {
  it('are in the header and on a page of their own', async () => {
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
    expect(await page.locator('.strip').textContent()).toContain('(1 drained)');
    await page.getByRole('button', { name: 'Resume box' }).click();
    await page.getByRole('button', { name: 'Drain box' }).waitFor();
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
  it('reaches the content past the header first of all', async () => {
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
