import { aliases } from './vitest.aliases';

export default {
  root: import.meta.dirname,
  cacheDir: '../../web/node_modules/.vitest',
  resolve: { alias: aliases },
  test: {
    include: ['browser/**/*.test.ts'],
    // Runs one Chromium at a time, because the machine may be small.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
};
