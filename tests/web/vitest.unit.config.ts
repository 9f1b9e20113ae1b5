import { defineConfig } from 'vitest/config';

import { aliases } from './vitest.aliases';

export default defineConfig({
  root: import.meta.dirname,
  resolve: { alias: aliases },
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  cacheDir: '/tmp/attune-web-vitest',
  test: { include: ['unit/**/*.test.ts'], reporters: ['default'] },
});
