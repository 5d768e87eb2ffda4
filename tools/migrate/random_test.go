// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pair is a spec as clients of both versions write it, by no code of the policies.
type pair struct{ older, newer map[string]any }

// newPair returns a random one. If it is expressible, both versions can say all of it.
func newPair(r *rand.Rand) (p pair, expressible bool) {
	p = pair{map[string]any{}, map[string]any{}}
	word := func(letters string, most int) string {
		return strings.Map(func(rune) rune { all := []rune(letters); return all[r.IntN(len(all))] }, strings.Repeat("x", 1+r.IntN(most)))
	}
	both := func(older, newer map[string]any) {
		if r.IntN(4) > 0 { // otherwise no one gives it
			maps.Copy(p.older, older)
			maps.Copy(p.newer, newer)
		}
	}
	name := word(`aZ9 '"\{$é世`, 60)
	maps.Copy(p.older, map[string]any{"name": name})
	maps.Copy(p.newer, map[string]any{"title": name})
	host, port := word("ab.:[]-", 100), r.Int64N(65536)
	both(map[string]any{"address": fmt.Sprintf("%s:%d", host, port)}, map[string]any{"host": host, "port": port})
	level := r.Int64N(3)
	both(map[string]any{"level": level + 1}, map[string]any{"tier": []string{"Small", "Medium", "Large"}[level]})
	site, path := word("abc.", 60), "/"+word("ab/-", 60)
	both(map[string]any{"scheme": "https", "site": site, "path": path}, map[string]any{"url": "https://" + site + path})
	cpu := r.Int64N(1<<53) - 1<<52
	both(map[string]any{"cpu": cpu}, map[string]any{"resources": map[string]any{"cpu": cpu}})
	user, realm := word("uv^w", 20), r.Int64N(65536)
	both(map[string]any{"user": user, "realm": realm}, map[string]any{"login": fmt.Sprintf("%s^%d", user, realm)})
	var ports []any
	byName := map[string]any{}
	for i := range 1 + r.Int64N(8) {
		ports = append(ports, map[string]any{"name": fmt.Sprintf("p'%d", i), "port": i * 1000})
		byName[fmt.Sprintf("p'%d", i)] = i * 1000
	}
	both(map[string]any{"ports": ports}, map[string]any{"portsByName": byName})
	size, ip := r.Int64N(100000), word("0123.:", 39)
	quantity, ips := fmt.Sprintf("%dGi", size), []any{ip}
	expressible = r.IntN(2) == 0
	if !expressible {
		quantity, ips = fmt.Sprintf("%dMi", size*1024+1+r.Int64N(1023)), append(ips, ip+"x")
	}
	maps.Copy(p.older, map[string]any{"sizeGB": size, "ip": ip})
	maps.Copy(p.newer, map[string]any{"size": quantity, "ips": ips})
	return p, expressible
}

// playRandom writes random objects through each version that can express them, and compares what
// is stored. Then a client of the old version writes it back with another field changed.
func (w *walk) playRandom(t *testing.T) {
	anyOrder := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	for seed := range uint64(50) {
		p, expressible := newPair(rand.New(rand.NewPCG(seed, 0)))
		want := maps.Clone(p.older)
		maps.Copy(want, p.newer)
		want = withDefaults(want)
		write := func(version string, spec map[string]any, before *unstructured.Unstructured) *unstructured.Unstructured {
			got, err := w.send(t, version, spec, before)
			if err != nil {
				t.Fatalf("seed %d, %s %v: %v", seed, version, spec, err)
			}
			if diff := cmp.Diff(want, got.Object["spec"], anyOrder); diff != "" {
				t.Fatalf("seed %d, %s %v: (-want +got)\n%s", seed, version, spec, diff)
			}
			return got
		}
		if expressible {
			write("v1alpha1", p.older, nil)
		}
		stored := write("v1beta1", p.newer, nil)
		want["replicas"] = int64(7)
		typed := map[string]any{"replicas": int64(7)}
		for field := range p.older {
			typed[field] = stored.Object["spec"].(map[string]any)[field]
		}
		write("v1alpha1", typed, stored)
	}
}
