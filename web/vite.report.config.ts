import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { defineConfig, type Plugin } from 'vite';

import { thirdPartyNotices } from './vite.config';

// Builds report.html: the pages of one sweep as one file, which opens without a server. The server
// replaces its comment by the answers that the pages read.
export default defineConfig({
  plugins: [oneFile()],
  publicDir: false,
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    assetsInlineLimit: () => true,
    cssCodeSplit: false,
    emptyOutDir: false,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: { input: 'report.html', output: { format: 'iife' } },
  },
});

// Puts all scripts and styles into the page, with a policy that allows these scripts and no request.
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      const scripts = [readFileSync(new URL('public/theme.js', import.meta.url), 'utf8')];
      const styles: string[] = [];
      let page = '';
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === 'chunk') scripts.push(part.code.replaceAll('</script', '<\\/script'));
        else if (name.endsWith('.css')) styles.push(String(part.source));
        else if (name === 'report.html') page = String(part.source);
        // A report has no logs, so nothing starts the worker that searches them.
        else if (!name.startsWith('assets/search_worker-'))
          throw new Error(`${name} is neither script, style nor report.html`);
        delete bundle[name];
      }
      const [theme, main, ...others] = scripts;
      if (theme === undefined || main === undefined || others.length > 0 || page === '')
        throw new Error('report.html needs one script');
      const hashes = [theme, main].map(
        (code) => `'sha256-${createHash('sha256').update(code).digest('base64')}'`,
      );
      const policy =
        `default-src 'none'; script-src ${hashes.join(' ')}; style-src 'unsafe-inline'; ` +
        'img-src data: blob:; font-src data:';
      const put = (pattern: RegExp, text: string): void => {
        if (!pattern.test(page)) throw new Error(`report.html lacks ${pattern}`);
        page = page.replace(pattern, () => text);
      };
      put(/<link rel="stylesheet"[^>]*>/, `<style>${styles.join('\n')}</style>`);
      put(/<script type="module"[^>]*><\/script>/, `<script type="module">${main}</script>`);
      put(
        /<meta charset="utf-8" \/>/,
        `<meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <script>${theme}</script>
    <script type="text/plain" id="licences">${thirdPartyNotices()}</script>`,
      );
      this.emitFile({ type: 'asset', fileName: 'report.html', source: page });
    },
  };
}
