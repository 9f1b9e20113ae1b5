// Runs the browser tests. Without Chromium, it exits with 77, which CTest shows as "skipped".

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const chromium = process.env.ATTUNE_CHROMIUM ?? '/usr/bin/chromium';
if (!existsSync(chromium)) {
  console.log(`skipped: ${chromium} is not installed (set ATTUNE_CHROMIUM to another Chromium)`);
  process.exit(77);
}

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const vitest = spawn(
  process.execPath,
  [
    path('../../web/node_modules/vitest/vitest.mjs'),
    'run',
    '--config',
    path('./vitest.browser.config.ts'),
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit', env: { ...process.env, ATTUNE_CHROMIUM: chromium } },
);
vitest.on('exit', (code) => process.exit(code ?? 1));
