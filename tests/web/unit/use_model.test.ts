import { describe, expect, it } from 'vitest';

import { tarParts } from '../../../web/src/model/tar';
import {
  cppSnippet,
  getCommand,
  mainFileOf,
  pythonSnippet,
} from '../../../web/src/model/use_model';

const name = { sweep: 's1', trial: 17, attempt: 2, step: 900 };

describe('how to use a model', () => {
  it('names the checkpoint as the command line does', () => {
    expect(getCommand(name)).toBe('attune checkpoint get s1/17/2-900 --out model');
  });

  it('prefers weights, and the file of the model', () => {
    expect(mainFileOf(['config.json', 'ema.safetensors', 'model.safetensors'])?.file).toBe(
      'model.safetensors',
    );
    expect(mainFileOf(['state.json', 'net.pt'])?.file).toBe('net.pt');
    expect(mainFileOf(['weights.bin'])).toBeUndefined();
  });

  it('loads the main file in Python', () => {
    expect(pythonSnippet(name, ['nets/model.safetensors'])).toBe(
      [
        'from attune.client import Server',
        'from safetensors.torch import load_file',
        '',
        'trial = Server().sweep("s1").trial(17)',
        'folder = trial.checkpoint(step=900).to_directory("model")',
        'model.load_state_dict(load_file(folder / "nets/model.safetensors"))  # model: your torch.nn.Module',
      ].join('\n'),
    );
    expect(pythonSnippet(name, [])).toContain('folder.iterdir()');
  });

  it('loads the main file in C++', () => {
    expect(cppSnippet(['model.safetensors'])).toContain('checkpoint.Read("model", *model);');
    expect(cppSnippet(['state.json'])).toContain('checkpoint.ReadConfig("state")');
    expect(cppSnippet(['model.pt'])).toContain('checkpoint.AsDirectory()');
  });
});

describe('a tar archive', () => {
  const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
  const text = (of: Uint8Array, from: number, to: number): string =>
    new TextDecoder().decode(of.subarray(from, to)).replace(/\0+$/, '');

  it('has whole blocks, with name, size and sum in each header', async () => {
    const parts = tarParts([{ name: 'model/a.txt', parts: [bytes('hello '), bytes('world')] }]);
    const whole = new Uint8Array(await new Blob(parts).arrayBuffer());
    expect(whole.length).toBe(4 * 512);
    expect(text(whole, 0, 100)).toBe('model/a.txt');
    expect(parseInt(text(whole, 124, 136), 8)).toBe(11);
    expect(text(whole, 257, 262)).toBe('ustar');
    expect(text(whole, 512, 523)).toBe('hello world');
    const header = whole.slice(0, 512);
    header.fill(32, 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    expect(parseInt(text(whole, 148, 154), 8)).toBe(sum);
  });

  it('splits long names at a folder', () => {
    const long = `${'d'.repeat(90)}/${'f'.repeat(90)}`;
    const [header] = tarParts([{ name: long, parts: [] }]);
    expect(text(header as Uint8Array, 345, 500)).toBe('d'.repeat(90));
    expect(text(header as Uint8Array, 0, 100)).toBe('f'.repeat(90));
    expect(() => tarParts([{ name: 'x'.repeat(101), parts: [] }])).toThrow('too long');
  });
});
