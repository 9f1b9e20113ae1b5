// Serves the mock by hand: cd web && npx vite-node ../tests/web/mock/run.ts [PORT] [TRIALS]
// Then open the printed address. Trials of s1 continue to train, with one report a second.

import { fileURLToPath } from 'node:url';

import { randomStream } from './random';
import { largeWorld, smallWorld, train } from './scenarios';
import { MockServer, token } from './server';

const pages =
  process.env.ATTUNE_WEB_DIST ?? fileURLToPath(new URL('../../../web/dist', import.meta.url));
const [port = '8099', trials = '0'] = process.argv.slice(2);
const world = Number(trials) > 0 ? largeWorld(Number(trials)) : smallWorld();
const server = await MockServer.start(world, pages, Number(port));
console.log(`${server.url}/login?token=${token}`);

const random = randomStream(3);
setInterval(() => {
  for (const all of world.trials.values()) {
    const trial = all.find((each) => each.state === 'running' && each.step < 9);
    if (trial) train(world, trial, trial.step + 1, random);
  }
}, 1000);
