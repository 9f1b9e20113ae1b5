import type { EnvironmentRecord, ExecutorEnvironment } from '../api/contract';

const commitChars = 8;

/** The versions that people compare first: `commit 0f3a1b2c, changed · Python 3.11.7 · torch 2.2.0`. */
export function environmentLine({ git, python, gpu }: EnvironmentRecord): string {
  const torch = python?.packages?.['torch'];
  return [
    git && `commit ${git.commit.slice(0, commitChars)}${git.dirty ? ', changed' : ''}`,
    python && `Python ${python.version}`,
    torch !== undefined && `torch ${torch}`,
    gpuText(gpu?.models ?? []),
    gpu?.driver !== undefined && `driver ${gpu.driver}`,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** "4 NVIDIA H200, NVIDIA A100" */
function gpuText(models: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const model of models) counts.set(model, (counts.get(model) ?? 0) + 1);
  return [...counts].map(([model, count]) => (count > 1 ? `${count} ${model}` : model)).join(', ');
}

export interface EnvironmentGroup {
  executors: string[];
  record: EnvironmentRecord;
}

/** Executors with the same record, together. */
export function environmentGroups(executors: readonly ExecutorEnvironment[]): EnvironmentGroup[] {
  const groups = new Map<string, EnvironmentGroup>();
  for (const { executor, record } of executors) {
    const text = JSON.stringify(record);
    const group = groups.get(text);
    if (group) group.executors.push(executor);
    else groups.set(text, { executors: [executor], record });
  }
  return [...groups.values()];
}

/** The members of a record with their names for people, without the packages. */
export function environmentFacts({
  attune,
  container,
  python,
  git,
  gpu,
  cpu,
  kernel,
  os,
  libc,
}: EnvironmentRecord): [name: string, value: string][] {
  const facts: [string, string | undefined][] = [
    ['Attune', attune],
    ['git commit', git && git.commit + (git.dirty ? ', files have changed' : '')],
    ['container', container && [container.image, container.digest].filter(Boolean).join(', ')],
    ['Python', python && `${python.version}, ${python.executable}`],
    ['GPUs', gpuText(gpu?.models ?? [])],
    ['GPU driver', gpu?.driver],
    ['CPU', cpu],
    ['kernel', kernel],
    ['system', os],
    ['C library', libc],
  ];
  return facts.filter((fact): fact is [string, string] => Boolean(fact[1]));
}

/** The packages as lines of a file of requirements. */
export function requirements({ python }: EnvironmentRecord): string[] {
  return Object.entries(python?.packages ?? {}).map(([name, version]) => `${name}==${version}`);
}
