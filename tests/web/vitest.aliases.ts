import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// The packages are installed beside the page, in web/node_modules, which is not above this folder.
const packages = fileURLToPath(new URL('../../web/node_modules', import.meta.url));

export const aliases = ['vitest', 'playwright-core'].map((name) => ({
  find: new RegExp(`^${name}$`),
  replacement: join(packages, name, name === 'vitest' ? 'dist/index.js' : 'index.mjs'),
}));
