// Command checker tells whether a history of locks, writes and reads is linearizable for a fenced lock.
//
// It reads JSON from standard input and prints JSON. Each asset is a partition of its own. The model's state is the
// token of whoever was granted last, whether that grant has ended, and what the target contains.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

const mostClients = 16

// So long an order is looked for; what is linearizable takes moments.
const longest = 4 * time.Minute

// An operation as the clients record it. Times are in nanoseconds; one without a return has lost its answer.
type operation struct {
	Asset  string `json:"asset"`
	Client string `json:"client"`
	Kind   string `json:"kind"`
	Token  int    `json:"token"`
	Value  string `json:"value"`
	Result string `json:"result"`
	Call   int64  `json:"call"`
	Return *int64 `json:"return"`
}

type verdict struct {
	Asset      string `json:"asset"`
	Operations int    `json:"operations"`
	Clients    int    `json:"clients"`
	Result     string `json:"result"`
	Longest    int    `json:"longest"`
	Stuck      string `json:"stuck,omitempty"`
}

type fencedLock struct {
	token int
	ended bool
	value string
}

// step says whether an operation can take effect in a state, and what the state is then.
//
//   - acquire: a new token, higher than all before, and only once the last grant has ended
//   - end: the grant with this token is over, by release or expiry, before the next one begins
//   - write with a token: admitted while no later token was granted, refused only when its grant has ended
//   - write without a token: admitted only while nobody holds
//   - a write whose answer was lost takes effect if it would have been admitted
//   - read: what was written last
func step(state fencedLock, op operation) (bool, fencedLock) {
	switch op.Kind {
	case "acquire":
		return state.ended && op.Token > state.token, fencedLock{op.Token, false, state.value}
	case "end":
		return op.Token == state.token && !state.ended, fencedLock{state.token, true, state.value}
	case "write":
		return write(state, op)
	case "read":
		return state.value == op.Value, state
	}
	panic("unknown operation " + op.Kind)
}

func write(state fencedLock, op operation) (bool, fencedLock) {
	own := op.Token != 0 && op.Token == state.token
	admitted := own || (op.Token == 0 && state.ended)
	written := fencedLock{state.token, state.ended, op.Value}
	switch {
	case op.Result == "refused":
		return !own || state.ended, state
	case op.Result == "ok":
		return admitted, written
	case admitted:
		return true, written
	}
	return true, state
}

var model = porcupine.Model{
	Init: func() any { return fencedLock{ended: true} },
	Step: func(state, input, _ any) (bool, any) {
		return step(state.(fencedLock), input.(operation))
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(operation)
		return fmt.Sprintf("%s %s(%d, %q) %s", op.Client, op.Kind, op.Token, op.Value, op.Result)
	},
}

func check(asset string, history []operation, timeout time.Duration) verdict {
	clients := map[string]int{}
	var last int64
	for _, op := range history {
		if _, known := clients[op.Client]; !known {
			clients[op.Client] = len(clients)
		}
		last = max(last, op.Call)
		if op.Return != nil {
			last = max(last, *op.Return)
		}
	}
	operations := make([]porcupine.Operation, 0, len(history))
	for _, op := range history {
		end := last + 1
		if op.Return != nil {
			end = *op.Return
		}
		operations = append(operations, porcupine.Operation{
			ClientId: clients[op.Client], Input: op, Call: op.Call, Return: end,
		})
	}
	result, info := porcupine.CheckOperationsVerbose(model, operations, timeout)
	found := verdict{Asset: asset, Operations: len(history), Clients: len(clients), Result: string(result)}
	describe(&found, operations, info)
	return found
}

// describe adds how far the longest linearization came, and what it could not go on with.
func describe(found *verdict, operations []porcupine.Operation, info porcupine.LinearizationInfo) {
	reached := map[operation]bool{}
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, linearization := range partition {
			if len(linearization) < found.Longest {
				continue
			}
			found.Longest = len(linearization)
			clear(reached)
			for _, done := range linearization {
				reached[done.Input.(operation)] = true
			}
		}
	}
	if found.Result == string(porcupine.Ok) {
		return
	}
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	for _, op := range operations {
		if !reached[op.Input.(operation)] {
			found.Stuck = model.DescribeOperation(op.Input, nil)
			return
		}
	}
}

func run() error {
	var history []operation
	if err := json.NewDecoder(os.Stdin).Decode(&history); err != nil {
		return fmt.Errorf("not a history: %w", err)
	}
	partitions := map[string][]operation{}
	for _, op := range history {
		partitions[op.Asset] = append(partitions[op.Asset], op)
	}
	verdicts := []verdict{}
	for _, asset := range slices.Sorted(maps.Keys(partitions)) {
		found := check(asset, partitions[asset], longest)
		if found.Clients > mostClients {
			return fmt.Errorf("%s has %d clients; more than %d take too long", asset, found.Clients, mostClients)
		}
		verdicts = append(verdicts, found)
	}
	return json.NewEncoder(os.Stdout).Encode(verdicts)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
		os.Exit(2)
	}
}
