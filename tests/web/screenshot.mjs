// Takes a picture of a running server's page, for the documentation.
//
//   node tests/web/screenshot.mjs URL TOKEN OUT.png [--dark] [--path /sweeps/s1]
//                                 [--width 1440] [--height 900] [--curves 3] [--full]
//
// Waits until the page has its data and, on a sweep's page, until --curves curves are drawn, or
// the same number of trials in another view.

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

// playwright-core is installed in web/node_modules.
const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    dark: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    path: { type: 'string', default: '/' },
    width: { type: 'string', default: '1440' },
    height: { type: 'string', default: '900' },
    curves: { type: 'string', default: '3' },
    scale: { type: 'string', default: '1' },
  },
});
const [url, token, out] = positionals;
if (!url || !token || !out) {
  console.error('usage: screenshot.mjs URL TOKEN OUT.png [--dark] [--path /sweeps/s1]');
  process.exit(2);
}

const waitMs = 120_000;
const browser = await chromium.launch({
  executablePath: process.env.ATTUNE_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage({
    viewport: { width: Number(values.width), height: Number(values.height) },
    deviceScaleFactor: Number(values.scale),
    colorScheme: values.dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
  });
  await page.goto(`${url}/login?token=${encodeURIComponent(token)}`);
  await page.goto(url + values.path);
  await page.locator('.loading').waitFor({ state: 'detached', timeout: waitMs });
  await page.locator('h1').first().waitFor({ timeout: waitMs });
  if (/^\/sweeps\/[^/?]+($|\?)/.test(values.path) && !values.path.includes('tab=')) {
    await page.waitForFunction(
      (wanted) => {
        const drawn = document.querySelector('[data-lines], [data-dots], [data-strands]')?.dataset;
        return Number(drawn?.lines ?? drawn?.dots ?? drawn?.strands ?? 0) >= wanted;
      },
      Number(values.curves),
      { timeout: waitMs },
    );
  }
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: out, fullPage: values.full });
} finally {
  await browser.close();
}
