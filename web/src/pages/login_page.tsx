import type { JSX } from 'preact';

/** Shown on 401. The form sends the same request as the printed link. */
export function LoginPage(): JSX.Element {
  return (
    <section class="login" aria-labelledby="login-title">
      <h1 id="login-title">This browser is not signed in</h1>
      <p>
        Open the link that <code>attune</code> printed when it started:
      </p>
      <pre class="code">{`${location.origin}/login?token=…`}</pre>
      <p>
        Or paste the token, which is in the file <code>token</code> of the server's data folder:
      </p>
      <form action="/login" method="get">
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
            Sign in
          </button>
        </div>
      </form>
    </section>
  );
}
