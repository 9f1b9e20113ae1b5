// Takes the pictures of the dashboard in docs/images, from the mock server. Run it in web/, after `npm run build`:
//
//   npx vite-node ../tests/web/screenshots.ts -- [--out FOLDER] [--only NAME,…] [--dark] [--width 1280] [--height 800]
//
// Without options it takes every picture of docs/images. The options are for looking at a page yourself. --only also
// knows pages without a picture there, and saves PNG.

import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { measuredWorld } from './mock/measured';
import {
  conditionalWorld,
  failingWorld,
  frontWorld,
  largeWorld,
  smallWorld,
} from './mock/scenarios';
import { MockServer, token } from './mock/server';
import { usageWorld } from './mock/usage';
import { World } from './mock/world';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core') as typeof import('playwright-core');
type Page = import('playwright-core').Page;

interface Picture {
  world(): World;
  path: string;
  /** The element that appears when the page is complete. */
  ready: string;
}

const curves = '[data-testid=curves][data-points]';
const large = 10_000;

/** The pictures of docs/images. */
const documented: Record<string, Picture> = {
  sweep: { world: () => largeWorld(200), path: '/sweeps/big', ready: curves },
  'ten-thousand': {
    world: () => measuredWorld(large, 200),
    path: '/sweeps/big',
    ready: `[data-testid=curves][data-density="${large}"]`,
  },
  parallel: {
    world: () => largeWorld(200),
    path: '/sweeps/big?view=parallel',
    ready: 'canvas[data-strands]',
  },
};

/** Pages to look at, with --only. */
const others: Record<string, Picture> = {
  sweeps: { world: smallWorld, path: '/', ready: 'main tbody tr' },
  empty: { world: () => new World(), path: '/', ready: '.empty' },
  small: { world: smallWorld, path: '/sweeps/s1', ready: curves },
  fronts: { world: frontWorld, path: '/sweeps/s1?view=history', ready: '[data-testid=history]' },
  conditional: {
    world: conditionalWorld,
    path: '/sweeps/s1?view=parallel',
    ready: 'canvas[data-strands]',
  },
  failures: { world: failingWorld, path: '/sweeps/s1?view=failures', ready: '.failure-log' },
  slices: {
    world: () => largeWorld(200),
    path: '/sweeps/big?view=slices',
    ready: '[data-testid=slice][data-dots]',
  },
  contour: {
    world: () => largeWorld(200),
    path: '/sweeps/big?view=contour',
    ready: '[data-testid=contour][data-dots]',
  },
  file: { world: smallWorld, path: '/sweeps/s1?tab=file', ready: '[data-testid=file]' },
  compare: {
    world: smallWorld,
    path: '/sweeps/s1/compare?trials=0,2,3',
    ready: '[data-testid=course]',
  },
  trial: { world: smallWorld, path: '/sweeps/s1/trials/9', ready: '[data-testid=decisions]' },
  executors: { world: usageWorld, path: '/executors', ready: 'main tbody tr' },
  new: { world: smallWorld, path: '/new', ready: '.editor-keys button' },
  edit: { world: smallWorld, path: '/sweeps/s1/edit', ready: '[data-testid=changes]' },
  queue: { world: usageWorld, path: '/queue', ready: 'main tbody tr' },
};

const { values: options } = parseArgs({
  options: {
    out: {
      type: 'string',
      default: fileURLToPath(new URL('../../docs/images', import.meta.url)),
    },
    only: { type: 'string' },
    dark: { type: 'boolean', default: false },
    width: { type: 'string', default: '1280' },
    height: { type: 'string', default: '800' },
    dist: { type: 'string', default: fileURLToPath(new URL('../../web/dist', import.meta.url)) },
  },
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
});

const browser = await chromium.launch({
  executablePath: process.env.ATTUNE_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});

/** The same picture in a fraction of the bytes. */
async function toWebp(page: Page, png: Buffer): Promise<Buffer> {
  const encoded = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const canvas = document.createElement('canvas');
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0);
    return canvas.toDataURL('image/webp', 0.85).split(',')[1] ?? '';
  }, png.toString('base64'));
  return Buffer.from(encoded, 'base64');
}

async function take(name: string, { world, path, ready }: Picture): Promise<void> {
  const server = await MockServer.start(world(), options.dist);
  const context = await browser.newContext({
    viewport: { width: Number(options.width), height: Number(options.height) },
    colorScheme: options.dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
  });
  await context.addCookies([{ name: server.cookie, value: token, domain: '127.0.0.1', path: '/' }]);
  const page = await context.newPage();
  await page.goto(server.url + path);
  await page.locator(ready).first().waitFor({ state: 'attached', timeout: 120_000 });
  await page.evaluate(() => document.fonts.ready);
  const png = await page.screenshot();
  if (options.only) await writeFile(join(options.out, `${name}.png`), png);
  else await writeFile(join(options.out, `${name}.webp`), await toWebp(page, png));
  await context.close();
  await server.close();
}

const wanted = options.only ? options.only.split(',') : Object.keys(documented);
const known = { ...documented, ...others };
for (const name of wanted) {
  const picture = known[name];
  if (!picture) throw new Error(`${name} is none of ${Object.keys(known).join(', ')}`);
  await take(name, picture);
}
await browser.close();
