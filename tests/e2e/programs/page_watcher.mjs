// Opens a sweep's page on a real server and prints the last step of its chart, a line whenever it
// changes, until the chart has reached the step. The page is never loaded again.
//
//   node page_watcher.mjs URL TOKEN SWEEP STEP

import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

const [url, token, sweep, step] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.ATTUNE_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage();
  let loads = 0;
  page.on('load', () => (loads += 1));
  await page.goto(`${url}/login?token=${encodeURIComponent(token)}`);
  await page.goto(`${url}/sweeps/${sweep}`);
  const before = loads;
  await page.exposeFunction('tell', (text) => console.log(text));
  await page.waitForFunction(
    (last) => {
      const reached = /to step (\d+)/.exec(document.body.innerText)?.[1];
      if (reached && reached !== window.told) {
        window.told = reached;
        window.tell(reached);
      }
      return Number(reached) >= last;
    },
    Number(step),
    { timeout: 60_000, polling: 'raf' },
  );
  if (loads !== before) throw new Error('the page was loaded again');
} finally {
  await browser.close();
}
