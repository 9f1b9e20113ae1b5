import { localProblem, type Source } from '../api/client';

// What a request may choose freely: a report has one answer, with all that it knows.
const choices = ['page_size', 'limit', 'order_by', 'filter', 'points', 'first_step', 'last_step'];

/** The names of the answers to a request, the best first. */
function namesOf(path: string): string[] {
  const [name = '', text] = path.split('?');
  const query = new URLSearchParams(text);
  for (const choice of choices) query.delete(choice);
  const isOfBest = query.has('best') || query.has('trials');
  query.delete('best');
  query.delete('trials');
  query.sort();
  const all = `${name}?${query}`;
  if (!name.endsWith('/curves')) return [all];
  // Curves of chosen trials are those of the best trials, which have the most points. A report of few
  // trials has only the curves of all trials; one of many metrics may have only those of the best.
  query.delete('page_token');
  const best = `${name}?${query} of the best`;
  return isOfBest ? [best, all] : [all, best];
}

/** The answers that a report contains: compressed, in base64, by the paths of their requests. */
export class RecordedAnswers implements Source {
  readonly isServer = false;
  private readonly packed: ReadonlyMap<string, string>;

  constructor(answers: Iterable<readonly [path: string, packed: string]>) {
    this.packed = new Map(
      [...answers].map(([path, packed]) => [namesOf(path)[0] as string, packed]),
    );
  }

  /** The answers in the elements of a report. */
  static of(document: Document): RecordedAnswers {
    const elements = [...document.querySelectorAll<HTMLElement>('script[data-answer]')];
    return new RecordedAnswers(
      elements.map(({ dataset, textContent }) => [dataset.answer ?? '', textContent ?? '']),
    );
  }

  has(path: string): boolean {
    return this.find(path) !== undefined;
  }

  async fetch(path: string): Promise<Response> {
    const packed = this.find(path);
    if (packed !== undefined) return new Response(unpack(packed));
    const problem = localProblem('The report does not contain this', 404);
    return new Response(JSON.stringify(problem), { status: problem.status });
  }

  private find(path: string): string | undefined {
    const name = namesOf(path).find((each) => this.packed.has(each));
    return name === undefined ? undefined : this.packed.get(name);
  }
}

function unpack(base64: string): ReadableStream {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
}
