import { readFileSync } from 'node:fs';

import { defineConfig, type Plugin } from 'vite';

// `npm run dev` talks to a server started by `attune serve`; open its /login link on this port once.
const server = process.env.ATTUNE_SERVER ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [noticesFile()],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the page's Content-Security-Policy allows no data: URLs
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: { '/api': server, '/login': server, '/version': server },
  },
});

// The licences of what the page contains ask to be handed on with it.
export function thirdPartyNotices(): string {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
  const direct = Object.keys(JSON.parse(read('package.json')).dependencies as object);
  const names = [...direct, '@preact/signals-core'].sort();
  const notices = names.map(
    (name) => `${name}\n\n${read(`node_modules/${name}/LICENSE`).trim()}\n`,
  );
  return notices.join(`\n${'-'.repeat(80)}\n\n`);
}

function noticesFile(): Plugin {
  return {
    name: 'third-party-notices',
    generateBundle() {
      const source = thirdPartyNotices();
      this.emitFile({ type: 'asset', fileName: 'third-party.txt', source });
    },
  };
}
