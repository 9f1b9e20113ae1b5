"""Draws pictures for docs/reference/searchers.md: the trials of each searcher on functions of two parameters.

Starts a server, asks it for trials of a sweep without a program, and tells it Branin's function, which has
three equal minima; `nsga2` gets two objectives, whose best compromises lie on the line between their minima,
and `bohb` steps: a trial comes nearer to its value with each, and ASHA ends most of them early, drawn smaller.
"""

import http.client
import json
import math
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402

TIMES = {"nsga2": 5}   # as many trials; a genetic algorithm shows itself in its later generations
STEPS = {"bohb": 9}    # of a trial, and 1 of others
SIZE, MARGIN = 220, 8  # of the plot, in pixels
CELLS = 48             # of the grid that contours are drawn on
DEEP, PALE = (13, 71, 161), (187, 222, 251)  # of the last trial and the first
SEARCHERS = ("random", "sobol", "grid", "tpe", "gp", "cmaes", "evolution", "nsga2", "bohb", "auto")


def branin(x, y):
    """Branin and Hoo's function (Towards global optimisation 2, 1978) on the unit square."""
    x, y = 15 * x - 5, 15 * y
    valley = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def distance(to_x, to_y):
    return lambda x, y: math.hypot(x - to_x, y - to_y)


def objectives(searcher):
    if searcher != "nsga2":
        return {"loss": branin}
    return {"left": distance(0.25, 0.7), "right": distance(0.75, 0.3)}


class Server(driver.Server):
    def __init__(self, build, data):
        super().__init__(build, data)
        self.connection = http.client.HTTPConnection(self.host, self.port)

    def post(self, path, body=None):
        self.connection.request("POST", "/api/v1" + path, body and json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status >= 300:
            sys.exit(f"{path}: {answer.status} {text}")
        return json.loads(text) if text else None


def trials(server, searcher, most):
    """The points (x, y) of all trials in their order, and the fraction of all steps that each was trained."""
    functions = objectives(searcher)
    steps = STEPS.get(searcher, 1)
    axis = {"min": 0.0, "max": 1.0}
    if searcher == "grid":
        axis = {"values": [round(i / 7, 4) for i in range(8)]}
    sweep = server.post("/sweeps", {
        "name": searcher, "parameters": {"x": axis, "y": axis}, "searcher": {"name": searcher, "seed": 1},
        "metrics": [{"name": name, "mode": "min"} for name in functions],
        "scheduler": {"name": "asha", "max": steps} if steps > 1 else {"name": "fifo"},
        "stop": {"max_trials": most}})["id"]
    places, trained = [], []
    while (trial := server.post(f"/sweeps/{sweep}/trials:ask"))["trial"] is not None:
        x, y = trial["config"]["x"], trial["config"]["y"]
        places.append((x, y))
        path = f"/sweeps/{sweep}/trials/{trial['trial']}:tell"
        for step in range(1, steps + 1):
            metrics = {name: function(x, y) * steps / step for name, function in functions.items()}
            answer = server.post(path, {"epoch": trial["epoch"], "step": step, "metrics": metrics})
            if answer["verdict"] != "continue":
                break
        else:
            server.post(path, {"epoch": trial["epoch"], "state": "completed"})
        trained.append(step / steps)
    return places, trained


def contour(function, level):
    """Segments of the contour line at this level, by marching squares: [((x, y), (x, y))]."""
    values = [[function(i / CELLS, j / CELLS) - level for j in range(CELLS + 1)] for i in range(CELLS + 1)]
    pieces = []
    for i in range(CELLS):
        for j in range(CELLS):
            corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
            crossed = []
            for (a, b), (c, d) in zip(corners, corners[1:] + corners[:1]):
                here, there = values[a][b], values[c][d]
                if (here < 0) != (there < 0):
                    part = here / (here - there)
                    crossed.append(((a + part * (c - a)) / CELLS, (b + part * (d - b)) / CELLS))
            pieces += zip(crossed[::2], crossed[1::2])
    return pieces


def position(place):
    """The position of a point in the picture, where y grows upwards."""
    return f"{MARGIN + place[0] * SIZE:.1f} {MARGIN + (1 - place[1]) * SIZE:.1f}"


def colour(part):
    return "#" + "".join(f"{round(pale + part * (deep - pale)):02x}" for deep, pale in zip(DEEP, PALE))


def draw(searcher, places, trained):
    width = SIZE + 2 * MARGIN
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {width}" width="{width}" '
             f'height="{width}" role="img">',
             f"<title>{len(places)} trials of {searcher}, the first ones pale</title>",
             f'<rect x="{MARGIN}" y="{MARGIN}" width="{SIZE}" height="{SIZE}" fill="#fff" stroke="#999"/>']
    functions = objectives(searcher)
    levels = (2, 8, 20, 45, 90, 150) if len(functions) == 1 else (0.1, 0.25, 0.4)
    for function in functions.values():
        for level in levels:
            path = "".join(f"M{position(a)}L{position(b)}" for a, b in contour(function, level))
            lines.append(f'<path d="{path}" fill="none" stroke="#ccc"/>')
    for i, (place, part) in enumerate(zip(places, trained)):
        x, y = position(place).split()
        lines.append(f'<circle cx="{x}" cy="{y}" r="{1.5 + 2 * part:.1f}" fill="{colour(i / max(len(places) - 1, 1))}" '
                     'stroke="#fff" stroke-width=".7"/>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path,
                        help="where the pictures go, such as docs/images")
    driver.add_count(parser, "trials", 60, "trials in a picture; nsga2 has five times as many")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, Server(arguments.build, pathlib.Path(data)) as server:
        for searcher in SEARCHERS:
            places, trained = trials(server, searcher, TIMES.get(searcher, 1) * arguments.trials)
            file = arguments.folder / f"searcher-{searcher}.svg"
            file.write_text(draw(searcher, places, trained))
            print(f"{file}: {len(places)} trials", flush=True)


if __name__ == "__main__":
    main()
