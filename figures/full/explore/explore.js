/* The explorer: filters, axes, a plot by BokehJS, a sortable table; its state is the part of the address after #. */
"use strict";
(() => {
  if (!window.Bokeh || !window.DPBENCH) return;
  const {rows, texts, looks, titles} = window.DPBENCH;
  const N = rows.problem.length;
  const text = (name, i) => texts[name] ? texts[name][rows[name][i]] : rows[name][i];
  const FILTERS = [["experiment", "experiment"], ["problem", "problem"], ["epsilon", "ε"], ["relation", "neighbours"],
    ["accounting", "accounting"], ["private", "private"], ["status", "status"]];
  const AXES = {excess: "excess loss", objective: "objective", accuracy: "accuracy", seconds: "seconds",
    passes: "passes over the data", epsilon_planned: "ε planned", epsilon_realised: "ε realised", epsilon: "ε asked"};
  const COLUMNS = [["algorithm", "algorithm"], ["problem", "problem"], ["epsilon", "ε"], ["excess", "excess loss"],
    ["objective", "objective"], ["accuracy", "accuracy"], ["seconds", "seconds"], ["passes", "passes"],
    ["epsilon_planned", "ε planned"], ["epsilon_realised", "ε realised"], ["n", "n"], ["settings", "settings"],
    ["relation", "neighbours"], ["accounting", "accounting"], ["private", "private"], ["status", "status"],
    ["experiment", "experiment"]];
  const STEP = 100;
  // All experiments, on the problem that most of them share: excess losses of several problems are on no common scale.
  const common = () => {
    const on = new Map();
    for (let i = 0; i < N; i++) {
      const problem = text("problem", i);
      on.set(problem, (on.get(problem) || new Set()).add(text("experiment", i)));
    }
    return [...on].reduce((best, one) => one[1].size > best[1].size ? one : best)[0];
  };
  const DEFAULT = {experiment: "", problem: N ? common() : "", x: "epsilon_planned", y: "excess", log: "xy", show: "best", sort: "excess"};
  const byId = id => document.getElementById(id);
  const element = (name, given = {}, ...inside) => {
    const made = Object.assign(document.createElement(name), given);
    made.append(...inside);
    return made;
  };
  let state = {}, shown = [], limit = STEP;

  // State: what differs from nothing is in the address.
  const read = () => {
    const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    state = location.hash.length > 1 ? given : {...DEFAULT};
    for (const axis of ["x", "y"]) if (!(state[axis] in AXES)) state[axis] = DEFAULT[axis];
    state.log ??= "";
    state.show ??= "all";
    state.sort ??= "excess";
  };
  const write = () => {
    const kept = Object.entries(state).filter(([, value]) => value !== "");
    history.replaceState(null, "", "#" + new URLSearchParams(kept));
  };
  const change = given => { Object.assign(state, given); limit = STEP; write(); draw(); };

  // What is selected
  const chosen = () => new Set((state.algorithm || "").split(",").filter(Boolean));
  const passes = (i, but) => FILTERS.every(([name]) =>
    name === but || !state[name] || String(text(name, i)) === state[name]);
  const indices = () => {
    const only = chosen();
    let found = [];
    for (let i = 0; i < N; i++) if (passes(i) && (!only.size || only.has(text("algorithm", i)))) found.push(i);
    if (state.show !== "best") return found;
    const loss = i => rows.excess[i] ?? rows.objective[i] ?? Infinity;
    const best = new Map();
    for (const i of found) {
      const cell = ["experiment", "problem", "epsilon", "algorithm", "accounting", "relation", "private"]
        .map(name => text(name, i)).join("|");
      if (!best.has(cell) || loss(i) < loss(best.get(cell))) best.set(cell, i);
    }
    return [...best.values()];
  };

  // Controls
  const option = (value, label, selected) => element("option", {value, textContent: label, selected});
  const select = (name, label, options, value) => {
    const made = element("select", {name, onchange: event => change({[name]: event.target.value})});
    made.append(...options.map(([v, l]) => option(v, l, v === value)));
    return element("label", {}, label, made);
  };
  const check = (label, on, toggle) => {
    const box = element("input", {type: "checkbox", checked: on, onchange: event => change(toggle(event.target.checked))});
    return element("label", {className: "check"}, box, label);
  };
  const controls = () => {
    const made = FILTERS.map(([name, label]) => {
      const values = new Set();
      for (let i = 0; i < N; i++) if (passes(i, name)) values.add(text(name, i));
      if (state[name]) values.add(name === "epsilon" ? Number(state[name]) : state[name]);
      const sorted = [...values].sort((a, b) => name === "epsilon" ? a - b : String(a).localeCompare(String(b)));
      const told = value => name === "experiment" ? titles[value] || value : String(value);
      return select(name, label, [["", "all"], ...sorted.map(v => [String(v), told(v)])], state[name] || "");
    });
    const axes = Object.entries(AXES);
    made.push(select("x", "across", axes, state.x), select("y", "up", axes, state.y),
      select("show", "show", [["all", "every setting"], ["best", "the best setting of each method"]], state.show));
    for (const axis of ["x", "y"])
      made.push(check(`log ${axis === "x" ? "across" : "up"}`, state.log.includes(axis),
        on => ({log: on ? [...new Set(state.log + axis)].join("") : state.log.replace(axis, "")})));
    made.push(element("button", {type: "button", textContent: "reset", onclick: () => { state = {...DEFAULT}; write(); draw(); }}));
    byId("controls").replaceChildren(...made);
  };
  const chips = () => {
    const only = chosen(), there = new Set();
    for (let i = 0; i < N; i++) if (passes(i)) there.add(text("algorithm", i));
    byId("algorithms").replaceChildren(...Object.keys(looks).filter(name => there.has(name)).map(name => {
      const [label, colour] = looks[name];
      const chip = element("button", {type: "button", title: name, onclick: () => {
        only.has(name) ? only.delete(name) : only.add(name);
        change({algorithm: [...only].join(",")});
      }}, element("i", {style: `background:${tint(colour)}`}), label);
      chip.setAttribute("aria-pressed", only.has(name));
      return chip;
    }));
  };

  // The plot
  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const tint = colour => dark() && colour === "#000000" ? "#E8E8E8" : colour;
  const digits = value => value === null || value === undefined ? "–" : String(+value.toPrecision(4));
  const withError = (name, i) => digits(rows[name][i]) +
    (rows[name + "_se"] && rows[name + "_se"][i] !== null && rows[name][i] !== null ? " ± " + digits(rows[name + "_se"][i]) : "");
  const command = i => `dpbench run --algo ${text("algorithm", i)} --dataset ${text("problem", i)} ` +
    `--eps ${rows.epsilon[i]} --seeds ${rows.n[i]} ${text("flags", i)}`.trim();
  const plot = () => {
    const log = axis => state.log.includes(axis);
    const usable = i => ["x", "y"].every(axis => {
      const value = rows[state[axis]][i];
      return value !== null && (!log(axis) || value > 0);
    });
    const drawn = shown.filter(usable);
    byId("counted").textContent = `${shown.length} of ${N} settings selected, ${drawn.length} have both values` +
      (log("x") || log("y") ? " (and are positive where an axis is logarithmic)" : "") +
      ". Marks: means over n seeds; lines: ± 1 standard error.";
    const ends = (axis, sign) => drawn.map(i => {
      const value = rows[state[axis]][i], error = (rows[state[axis] + "_se"] || [])[i] || 0;
      return log(axis) ? Math.max(value + sign * error, value / 20) : value + sign * error;
    });
    const data = {
      x: drawn.map(i => rows[state.x][i]), y: drawn.map(i => rows[state.y][i]),
      x0: ends("x", -1), x1: ends("x", 1), y0: ends("y", -1), y1: ends("y", 1), index: drawn,
      colour: drawn.map(i => tint(looks[text("algorithm", i)][1])),
      marker: drawn.map(i => looks[text("algorithm", i)][2]),
      fill: drawn.map(i => text("private", i) === "private" ? 0.85 : 0),
      method: drawn.map(i => looks[text("algorithm", i)][0]), where: drawn.map(i =>
        `${text("problem", i)}, ε = ${rows.epsilon[i]}, n = ${rows.n[i]}`),
      values: drawn.map(i => `${AXES[state.y]} ${withError(state.y, i)}, ${AXES[state.x]} ${withError(state.x, i)}`),
      settings: drawn.map(i => text("settings", i)), checked: drawn.map(i => text("checked_by", i)),
      command: drawn.map(command), kind: drawn.map(i => text("private", i)),
    };
    const ink = dark() ? "#e6e6e8" : "#1d1d1f", line = dark() ? "#3a3d42" : "#dfe2e6";
    const {figure, show} = Bokeh.Plotting;
    const p = figure({tools: "pan,box_zoom,wheel_zoom,reset,save", toolbar_location: "above", sizing_mode: "stretch_both",
      x_axis_type: log("x") ? "log" : "linear", y_axis_type: log("y") ? "log" : "linear",
      x_axis_label: AXES[state.x], y_axis_label: AXES[state.y], background_fill_alpha: 0, border_fill_alpha: 0,
      outline_line_color: null});
    for (const axis of [...p.xaxis, ...p.yaxis]) Object.assign(axis, {axis_label_text_color: ink,
      major_label_text_color: ink, axis_line_color: ink, major_tick_line_color: ink, minor_tick_line_color: line,
      axis_label_text_font_style: "normal"});
    for (const grid of [...p.xgrid, ...p.ygrid]) grid.grid_line_color = line;
    const source = new Bokeh.ColumnDataSource({data});
    const field = name => ({field: name});
    p.segment({x0: field("x"), x1: field("x"), y0: field("y0"), y1: field("y1"), source, line_color: field("colour"), line_alpha: 0.6});
    p.segment({x0: field("x0"), x1: field("x1"), y0: field("y"), y1: field("y"), source, line_color: field("colour"), line_alpha: 0.6});
    const marks = p.scatter({x: field("x"), y: field("y"), source, marker: field("marker"), size: 9,
      fill_color: field("colour"), fill_alpha: field("fill"), line_color: field("colour")});
    p.add_tools(new Bokeh.HoverTool({renderers: [marks], tooltips: [["method", "@method (@kind)"], ["where", "@where"],
      ["values", "@values"], ["settings", "@settings"], ["ε checked by", "@checked"], ["repeat", "@command"]]}),
      new Bokeh.TapTool({renderers: [marks]}));
    source.selected.change.connect(() => {
      const [first] = source.selected.indices;
      if (first !== undefined) detail(drawn[first]);
    });
    byId("plot").replaceChildren();
    return show(p, "#plot");
  };

  // One setting in full
  const detail = i => {
    const line = (name, value) => [element("dt", {textContent: name}), element("dd", {textContent: value})];
    const facts = element("dl", {}, ...[["method", `${looks[text("algorithm", i)][0]} (${text("private", i)})`],
      ["where", `${text("problem", i)}, ε = ${rows.epsilon[i]}, δ = ${digits(rows.delta[i])}, ${text("relation", i)}, ${text("accounting", i)}`],
      ["settings", text("settings", i)], ["seeds", `${rows.n[i]}, ${text("status", i)}`],
      ...Object.entries(AXES).filter(([name]) => rows[name][i] !== null).map(([name, label]) => [label, withError(name, i)]),
      ["ε checked by", text("checked_by", i)]].flatMap(([name, value]) => line(name, value)));
    byId("detail").replaceChildren(facts, element("pre", {textContent: command(i)}));
    byId("detail").hidden = false;
  };

  // The table
  const TEXT = new Set(["algorithm", "problem", "settings", "relation", "accounting", "private", "status", "experiment"]);
  const table = () => {
    const name = state.sort.replace("-", ""), down = state.sort.startsWith("-") ? -1 : 1;
    const value = i => TEXT.has(name) ? text(name, i) : rows[name][i];
    const sorted = [...shown].sort((a, b) => {
      const [u, v] = [value(a), value(b)];
      if (u === null || v === null) return (u === null) - (v === null);
      return down * (TEXT.has(name) ? u.localeCompare(v) : u - v);
    });
    byId("rows").tHead.replaceChildren(element("tr", {}, ...COLUMNS.map(([column, label]) => {
      const arrow = column === name ? (down > 0 ? " ▲" : " ▼") : "";
      const sort = element("button", {type: "button", textContent: label + arrow,
        onclick: () => change({sort: (column === name && down > 0 ? "-" : "") + column})});
      const head = element("th", {scope: "col"}, sort);
      if (arrow) head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
      return head;
    })));
    byId("rows").tBodies[0].replaceChildren(...sorted.slice(0, limit).map(i => {
      const row = element("tr", {onclick: () => { detail(i); byId("detail").scrollIntoView({block: "nearest"}); }});
      row.append(...COLUMNS.map(([column]) => element("td", {className: column === "settings" ? "long" : "short",
        textContent: column === "algorithm" ? looks[text("algorithm", i)][0]
          : column === "experiment" ? titles[text(column, i)] || text(column, i)
          : TEXT.has(column) ? text(column, i) : withError(column, i)})));
      return row;
    }));
    byId("more").hidden = sorted.length <= limit;
  };

  const draw = () => {
    shown = indices();
    controls();
    chips();
    table();
    byId("detail").hidden = true;
    return plot();
  };
  byId("missing").remove();
  byId("explorer").hidden = false;
  byId("more").onclick = () => { limit += STEP; table(); };
  addEventListener("hashchange", () => { read(); draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  read();
  draw();
})();
