import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// The packages are installed in web/node_modules, which is not in a parent folder of this one.
const packages = fileURLToPath(new URL('../../web/node_modules', import.meta.url));

export const aliases = [
  { find: /^vitest$/, replacement: join(packages, 'vitest/dist/index.js') },
  {
    find: /^playwright-core$/,
    replacement: join(packages, 'playwright-core/index.mjs'),
  },
];
