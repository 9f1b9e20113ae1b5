import type { CheckpointName } from '../api/client';

/** The name that the command line and the Python client use: "s1/17/2-900". */
function nameOfCheckpoint({ sweep, trial, attempt, step }: CheckpointName): string {
  return `${sweep}/${trial}/${attempt}-${step}`;
}

export function getCommand(name: CheckpointName): string {
  return `attune checkpoint get ${nameOfCheckpoint(name)} --out model`;
}

const known = ['.safetensors', '.pt', '.pth', '.json'] as const;
type Known = (typeof known)[number];

interface MainFile {
  file: string;
  /** Without the ending. */
  name: string;
  ending: Known;
}

/** The file that a reader most probably wants: weights before JSON, `model` before other names. */
export function mainFileOf(files: readonly string[]): MainFile | undefined {
  for (const ending of known) {
    const of = files.filter((file) => file.endsWith(ending)).sort();
    const file = of.find((each) => /(^|\/)model\./.test(each)) ?? of[0];
    if (file !== undefined) return { file, name: file.slice(0, -ending.length), ending };
  }
  return undefined;
}

/** A Python program that fetches the checkpoint and reads its main file. */
export function pythonSnippet(name: CheckpointName, files: readonly string[]): string {
  const main = mainFileOf(files);
  const path = main && `folder / ${JSON.stringify(main.file)}`;
  const [imported, read] = {
    '.safetensors': [
      'from safetensors.torch import load_file',
      `model.load_state_dict(load_file(${path}))  # model: your torch.nn.Module`,
    ],
    '.pt': ['import torch', `state = torch.load(${path}, weights_only=True)`],
    '.pth': ['import torch', `state = torch.load(${path}, weights_only=True)`],
    '.json': ['import json', `state = json.loads((${path}).read_text())`],
    '': ['', 'print(sorted(file.name for file in folder.iterdir()))'],
  }[main?.ending ?? ''];
  return [
    'from attune.client import Server',
    ...(imported ? [imported] : []),
    '',
    `trial = Server().sweep(${JSON.stringify(name.sweep)}).trial(${name.trial})`,
    `folder = trial.checkpoint(step=${name.step}).to_directory("model")`,
    read,
  ].join('\n');
}

/** C++ statements that read the main file from the folder that the command has made. */
export function cppSnippet(files: readonly string[]): string {
  const main = mainFileOf(files);
  const read =
    main?.ending === '.safetensors'
      ? `checkpoint.Read(${JSON.stringify(main.name)}, *model);  // model: your torch::nn module`
      : main?.ending === '.json'
        ? `const attune::Config state = checkpoint.ReadConfig(${JSON.stringify(main.name)});`
        : 'const std::filesystem::path& folder = checkpoint.AsDirectory();  // checks every file';
  return [
    '#include <attune/attune.h>',
    '',
    'const attune::CheckpointReader checkpoint("model");  // the folder of the command above',
    read,
  ].join('\n');
}
