import { aliases } from './vitest.aliases';

export default {
  root: import.meta.dirname,
  cacheDir: '../../web/node_modules/.vitest',
  resolve: { alias: aliases },
  test: {
    include: ['browser/**/*.test.ts'],
    // Two files at a time, because the machine may be small.
    maxWorkers: 2,
    minWorkers: 1,
    // A process runs several files, one after another: they share the harness and its Chromium.
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
};
