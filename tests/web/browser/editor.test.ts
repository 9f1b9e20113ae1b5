import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { smallWorld } from '../mock/scenarios';
import { Harness } from './harness';

const harness = new Harness();

const editor = (page: Page) => page.getByLabel('Sweep file', { exact: true }).locator('textarea');

describe('a new sweep', () => {
  it('is written with faults at their lines, and created', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/');
    await page.getByRole('link', { name: 'New sweep' }).click();
    await page.getByText('The file is valid. It has 3 rungs').waitFor();

    await editor(page).fill('command: [a]\nwrong: 1\n');
    const state = page.getByTestId('editor-state');
    await state.getByText('wrong: unknown key').waitFor();
    expect(await page.locator('.editor-fault').textContent()).toBe('2\n');
    const create = page.getByRole('button', { name: 'Create the sweep' });
    expect(await create.isDisabled()).toBe(true);
    await state.getByRole('button', { name: 'line 2' }).click();
    expect(
      await editor(page).evaluate((field) => (field as HTMLTextAreaElement).selectionStart),
    ).toBe('command: [a]\n'.length);

    await editor(page).fill('command: [a]\n');
    await page.getByLabel('folder on the hosts').fill('/data/project');
    await state.getByText('The file is valid.').waitFor();
    await create.click();
    await page.waitForURL(/\/sweeps\/s4$/);
    expect(world.sweep('s4').file).toBe('command: [a]\n');
    expect(server.requests).toContain('POST /sweeps?directory=%2Fdata%2Fproject');
  });

  it('suggests keys, keeps what was typed over a reload, and has examples', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/new');
    await editor(page).fill('command: [a]\nsche');
    await editor(page).press('Control+Space');
    await page.keyboard.press('Enter');
    await expect.poll(() => editor(page).inputValue()).toBe('command: [a]\nscheduler: ');
    await page.reload();
    await expect.poll(() => editor(page).inputValue()).toBe('command: [a]\nscheduler: ');
    await page.getByLabel('example').selectOption('fashion_mnist');
    await expect.poll(() => editor(page).inputValue()).toContain('fashion_mnist');
  });

  it('has a forecast of time and cost', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/new');
    await editor(page).fill('command: [a]\nstop: {max_trials: 20}\n');
    const forecast = page.getByTestId('forecast');
    await forecast.getByLabel('slots').fill('4');
    await forecast.getByLabel('seconds per step').fill('60');
    await forecast.getByRole('button', { name: 'Simulate' }).click();
    await forecast.getByText('About 5 min 00 s with 4 slots: 2 CPU-hours, 20 trials').waitFor();
  });

  it('loses nothing when the server is gone', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/new');
    await page.getByText('The file is valid.').waitFor();
    await page.route('**/api/v1/sweeps?*', (route) => route.abort());
    await page.getByRole('button', { name: 'Create the sweep' }).click();
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    expect(await editor(page).inputValue()).toContain('command');
  });

  it('begins with the file of another sweep', async () => {
    const world = smallWorld();
    world.sweep('s1').path = '/data/a/sweep.yaml';
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByRole('link', { name: 'Clone…' }).click();
    await page.getByRole('heading', { name: 'Clone s1' }).waitFor();
    await expect.poll(() => editor(page).inputValue()).toBe(world.sweep('s1').file);
    expect(await page.getByLabel('folder on the hosts').inputValue()).toBe('/data/a');
  });
});

describe('an edit', () => {
  it('shows its changes before it is saved', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('link', { name: 'Edit…' }).click();
    const save = page.getByRole('button', { name: 'Save the changes' });
    await editor(page).fill(`${world.sweep('s1').file}\npriority: 3\n`);
    await page.getByTestId('changes').getByText('priority 3 (was 0)').waitFor();
    expect(server.bodies).toEqual([]);
    await save.click();
    await page.waitForURL(/\/sweeps\/s1$/);
    expect(server.bodies).toEqual([{ priority: 3 }]);
    expect(world.sweep('s1').priority).toBe(3);
  });
});
