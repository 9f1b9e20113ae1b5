import { aliases } from './vitest.aliases';

export default {
  root: import.meta.dirname,
  cacheDir: '../../web/node_modules/.vitest',
  resolve: { alias: aliases },
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  test: { include: ['unit/**/*.test.ts'] },
};
