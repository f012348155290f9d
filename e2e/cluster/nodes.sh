# Functions of e2e/cluster/start that create the network of a cluster and start its nodes.

# Fails with the name of a kernel feature that is missing.
check_kernel() {
  local test=$logs/kernel
  ip link add check-a type veth peer name check-b || missing_feature "virtual Ethernet pairs (CONFIG_VETH)"
  ip link delete check-a
  nft add table ip check 2>/dev/null || missing_feature "nftables (CONFIG_NF_TABLES)"
  nft delete table ip check
  iptables -A INPUT -m comment --comment check -j ACCEPT 2>/dev/null || missing_feature "iptables (CONFIG_NFT_COMPAT)"
  iptables -F INPUT
  ipset create check hash:ip 2>/dev/null || missing_feature "IP sets (CONFIG_IP_SET)"
  ipset destroy check
  mkdir -p "$test"/{lower,upper,work,merged}
  mount -t overlay check -o "lowerdir=$test/lower,upperdir=$test/upper,workdir=$test/work" "$test/merged" 2>/dev/null ||
    missing_feature "overlay file systems (CONFIG_OVERLAY_FS) in $logs; TMPDIR names another folder"
  umount "$test/merged"
  rm -r "$test"
  if [ "$E2E_IP_FAMILY" != ipv4 ] && [ ! -e /proc/sys/net/ipv6 ]; then
    missing_feature "IPv6 (CONFIG_IPV6)"
  fi
  [ -e /sys/fs/cgroup/cgroup.controllers ] || [ -d /sys/fs/cgroup/memory ] || missing_feature "cgroups in /sys/fs/cgroup"
}

missing_feature() { # NAME
  echo "Nodes need $1, which this machine does not provide" >&2
  exit 1
}

# Connects the control plane to the network of the nodes, without a route to anything else.
start_network() {
  check_kernel
  local number
  # A bridge without an address changes its address when a node starts, and the other nodes lose it.
  ip link add nodes address 02:00:00:00:00:00 type bridge
  for number in $(seq "$E2E_API_SERVERS"); do
    for_families add_address "$number"
  done
  ip link set nodes up
  set_forwarding
  # Addresses of Services are translated when a packet leaves, for which it needs a route.
  for_families add_default_route
}

add_address() { # FAMILY NUMBER
  local network
  network=$(network nodes "$1")
  ip addr add "$(node_address "$1" "$2")/${network#*/}" dev nodes $([ "$1" = 4 ] || echo nodad)
}

add_default_route() { # FAMILY
  ip -"$1" route add default via "$(node_address "$1" 254)" dev nodes
}

# Runs what has no node of its own, then the nodes, and waits until they are ready.
start_nodes() {
  local plane=${planes[0]} number names=()
  local api_host
  api_host=$(api_address "$plane" 1)
  # The control plane has no Node, for which kube-proxy would wait 30 s.
  write_proxy_configuration "$plane" node-1 "$api_host" >"$plane/kube-proxy.yaml"
  keep_running "$plane" kube-proxy --config "$plane/kube-proxy.yaml"
  keep_running "$plane" kube-scheduler --kubeconfig "$plane/kube-scheduler.kubeconfig" --leader-elect=false \
    --bind-address 127.0.0.1
  start_registry registry 5000 ''
  start_registry private-registry 5001 "$(private_access)"
  start_dns
  allow_kube_router
  for number in $(seq "$E2E_NODES"); do
    names+=("node-$number")
    mkdir -p "$logs/node-$number/running"
    keep_node_running "$number" &
  done
  export E2E_REGISTRY E2E_PRIVATE_REGISTRY E2E_SECRET_DELAY=$((E2E_SYNC_FREQUENCY * 3 / 2))
  E2E_REGISTRY=$(url_host "$api_host"):5000
  E2E_PRIVATE_REGISTRY=$(url_host "$api_host"):5001
  echo "$E2E_REGISTRY" >"$plane/registry"
  until_done 30 registry curl --silent --fail --noproxy '*' "http://$E2E_REGISTRY/v2/"
  push_pause_image
  until_done 60 "${names[*]}" nodes_are_ready
  for number in 1 $(seq 11 $((10 + E2E_NODES))); do
    until_done 60 kube-proxy curl --silent --fail --noproxy '*' "http://$(url_host "$(node_address "$(first_family)" "$number")"):10256/healthz"
  done
}

nodes_are_ready() {
  local ready
  ready=$(kubectl get nodes --output 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' | grep -c True)
  [ "$ready" = "$E2E_NODES" ]
}

# PLANE NAME ADDRESS: the configuration of kube-proxy. Its mode nftables needs a feature gate before Kubernetes 1.31.
write_proxy_configuration() {
  cat <<CONFIGURATION
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: $(is_kubernetes_since 1.31 && echo nftables || echo iptables)
bindAddress: "$3"
clientConnection: {kubeconfig: "$1/kube-proxy.kubeconfig"}
clusterCIDR: "$(networks pods)"
hostnameOverride: $2
conntrack: {maxPerCore: 0}
CONFIGURATION
}

# NUMBER: starts a node, and starts it again after a power loss: when its first process ends, all its processes end.
keep_node_running() {
  local folder=$logs/node-$1 node
  while :; do
    unshare --net --mount-proc --pid --uts --fork --kill-child -- "$here/node" "${planes[0]}" "$folder" "$1" \
      </dev/null >>"$folder/node.log" 2>&1 &
    node=$!
    echo "$node" >"$folder/running/node.pid"
    connect_node "$1" "$node"
    # Bash reports processes that are killed.
    wait 2>/dev/null || true
    ip link delete "node-$1" 2>/dev/null || true
    while [ -e "$folder/running/node.stop" ]; do
      sleep 0.1
    done
  done
}

# NUMBER PROCESS: connects the network namespace of a process to the network of the nodes.
connect_node() {
  # Its process id is known before it enters the namespace.
  until [ "$(readlink "/proc/$2/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do
    sleep 0.02
  done
  ip link add "node-$1" type veth peer name eth0 address "02:00:00:00:00:0$1" netns "$2"
  ip link set "node-$1" master nodes up
  for_families add_pod_route "$1"
}

add_pod_route() { # FAMILY NODE
  ip -"$1" route replace "$(pod_network "$1" "$2")" via "$(node_address "$1" $((10 + $2)))" dev nodes
}

# NAME PORT ACCESS: a registry without TLS. ACCESS is YAML for its configuration.
start_registry() {
  local folder=$logs/$1
  mkdir -p "$folder/running"
  cat >"$folder/configuration.yaml" <<CONFIGURATION
version: 0.1
log: {accesslog: {disabled: true}, level: warn}
storage: {filesystem: {rootdirectory: "$folder/images"}, delete: {enabled: true}}
http: {addr: ":$2", secret: cluster}
$3
CONFIGURATION
  keep_running "$folder" docker-registry serve "$folder/configuration.yaml"
}

# The access of the user "puller" with the password "secret".
private_access() {
  # shellcheck disable=SC2016
  echo 'puller:$2a$05$zGEDa8v9OyvLKwOFhiJWXewTA8RvPFXwTEAaTJgOWgYn/F.wDVOZy' >"$logs/private-registry.htpasswd"
  echo "auth: {htpasswd: {realm: private, path: \"$logs/private-registry.htpasswd\"}}"
}

# Allows kube-router to read what NetworkPolicies select.
allow_kube_router() {
  kubectl apply -f - <<RIGHTS >/dev/null
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:kube-router}
rules:
- {apiGroups: [""], resources: [namespaces, nodes, pods, services, endpoints], verbs: [get, list, watch]}
- {apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:kube-router}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:kube-router}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: system:kube-router}]
RIGHTS
}

# CoreDNS, behind the Service with the address that kubelets write into pods.
start_dns() {
  local plane=${planes[0]} family addresses=
  cat >"$plane/Corefile" <<COREFILE
.:53 {
  errors
  ready 127.0.0.1:8181
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig $plane/kubeconfig
    ttl 5
  }
  cache 5
}
COREFILE
  keep_running "$plane" coredns -conf "$plane/Corefile"
  # COMMAND resolves the names of Services, too.
  printf 'nameserver %s\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n' \
    "$(node_address "$(first_family)" 1)" >"$plane/resolv.conf"
  mount --bind "$plane/resolv.conf" /etc/resolv.conf
  for family in $(families); do
    addresses+=${addresses:+, }\"$(service_address "$family" 10)\"
  done
  {
    cat <<SERVICE
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIPs: [$addresses]
  clusterIP: ${addresses%%,*}
  ipFamilyPolicy: $([ "$E2E_IP_FAMILY" = dual ] && echo RequireDualStack || echo SingleStack)
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
SERVICE
    for family in $(families); do
      cat <<SLICE
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-$family, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv$family
endpoints: [{addresses: ["$(node_address "$family" 1)"]}]
ports:
- {name: dns, port: 53, protocol: UDP}
- {name: dns-tcp, port: 53, protocol: TCP}
SLICE
    done
  } >"$plane/dns.yaml"
  until_done 30 "Service kube-dns" kubectl apply -f "$plane/dns.yaml"
}

# Pushes the image that holds the namespaces of a pod.
push_pause_image() {
  local folder=$logs/pause program
  program=$(command -v pause)
  mkdir -p "$folder"
  tar --create --file "$folder/layer" --mtime @0 --owner 0 --group 0 --mode 755 -C "${program%/*}" pause
  echo "{\"architecture\":\"$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')\",\"os\":\"linux\",\"config\":{\"Entrypoint\":[\"/pause\"]," \
    "\"User\":\"65535:65535\"},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"$(digest "$folder/layer")\"]}}" >"$folder/config"
  echo "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":" \
    "$(descriptor application/vnd.oci.image.config.v1+json "$folder/config"),\"layers\":" \
    "[$(descriptor application/vnd.oci.image.layer.v1.tar "$folder/layer")]}" >"$folder/manifest"
  upload "$folder/layer"
  upload "$folder/config"
  curl --silent --fail --noproxy '*' --output /dev/null --request PUT --data-binary "@$folder/manifest" \
    --header 'Content-Type: application/vnd.oci.image.manifest.v1+json' "http://$E2E_REGISTRY/v2/pause/manifests/1"
}

digest() { # FILE
  echo "sha256:$(sha256sum "$1" | cut -d' ' -f1)"
}

descriptor() { # TYPE FILE
  echo "{\"mediaType\":\"$1\",\"digest\":\"$(digest "$2")\",\"size\":$(stat -c %s "$2")}"
}

upload() { # FILE
  local location
  location=$(curl --silent --fail --noproxy '*' --request POST --dump-header - --output /dev/null \
    "http://$E2E_REGISTRY/v2/pause/blobs/uploads/" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
  curl --silent --fail --noproxy '*' --output /dev/null --request PUT --data-binary "@$1" \
    --header 'Content-Type: application/octet-stream' "$location&digest=$(digest "$1")"
}
