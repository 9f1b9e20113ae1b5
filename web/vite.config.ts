import { defineConfig } from 'vite';

// `npm run dev` talks to a server started by `attune serve`; open its /login link on this port once.
const server = process.env.ATTUNE_SERVER ?? 'http://127.0.0.1:8080';

export default defineConfig({
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
