import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

/** Shown on 401. */
export function LoginPage(): JSX.Element {
  const [problem, setProblem] = useState('');
  const logIn = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const token = new FormData(event.currentTarget as HTMLFormElement).get('token');
    try {
      // In a header, so that the token stays out of the browser's history.
      const answer = await fetch('/login', {
        headers: { Authorization: `Bearer ${String(token)}` },
        redirect: 'manual',
      });
      if (answer.type === 'opaqueredirect' || answer.ok) location.reload();
      else setProblem('This server does not know the token.');
    } catch {
      setProblem('The server does not answer.');
    }
  };
  return (
    <section class="login" aria-labelledby="login-title">
      <h1 id="login-title">This browser is not logged in</h1>
      <p>Run this command on the server's machine, and open the link that it prints:</p>
      <pre class="code">attune login</pre>
      <p>
        Or paste your token. The server's own token is in the file <code>token</code> of its data
        folder:
      </p>
      <form onSubmit={(event) => void logIn(event)}>
        <label for="token">Token</label>
        <div class="field">
          <input
            id="token"
            name="token"
            type="password"
            required
            autocomplete="off"
            spellcheck={false}
          />
          <button type="submit" class="primary">
            Log in
          </button>
        </div>
        {problem && <p role="alert">{problem}</p>}
      </form>
    </section>
  );
}
